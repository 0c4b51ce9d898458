// The values a model begins with.
#pragma once
#include <cstdint>

#include "core/thread_pool.h"
#include "train/parameters.h"

namespace liuli {

enum class InitialScheme : uint8_t {
  automatic,         ///< what the model's kind of block is used with, see initialise()
  normal,            ///< N(0, std²) everywhere
  gpt2,              ///< N(0, std²), matrices that write into the residual stream N(0, std² / 2L)
  truncated_normal,  ///< N(0, std²) cut at 2 std
  xavier,            ///< uniform ± √(6 / (fan_in + fan_out)); embeddings N(0, 1 / d_model)
};

struct InitialValues {
  InitialScheme scheme = InitialScheme::automatic;
  double standard_deviation = 0.02;
  uint64_t seed = 1;
};

/// Fills every parameter: norms γ = 1 (a file of Gemma's then holds 0), biases 0, matrices by the scheme. automatic:
/// xavier for an encoder-decoder (2017), truncated_normal for a model that reads both ways (BERT), gpt2 for decoders
/// with LayerNorm (GPT-2), else normal (Llama, Qwen, Gemma, OLMo). A value follows from seed, parameter and place alone,
/// whatever the threads.
/// Source: the papers and codes named in docs/training.md.
void initialise(Parameters& parameters, const ModelConfig& config, const InitialValues& values,
                ThreadPool& pool);

}  // namespace liuli
