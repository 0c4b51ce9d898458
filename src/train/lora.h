// Low-rank adapters: a few numbers learn beside weights that stay as they are.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/thread_pool.h"
#include "train/parameters.h"

namespace liuli {

struct LoraSettings {
  int64_t rank = 8;
  double alpha = 16;
  /// Matrices by the last part of their module's name ("q_proj", "c_attn"), or "q", "k", "v", "o", "gate", "up", "down".
  std::vector<std::string> targets = {"q", "v"};
  uint64_t seed = 1;
  std::string base;  ///< where the frozen weights are, for those who load the adapters elsewhere
};

/// W_eff = W + (α / r) · B · A with W frozen. The effective matrix is kept in place of W, so that the model runs
/// as any other, and is formed again after each step of the optimiser; gradients of A and B come from W's full one:
///   dA = (α / r) · Bᵀ dW,  dB = (α / r) · dW Aᵀ.
/// That is exact, and costs as much as training W itself: right for small models. A ~ uniform ± 1/√d_in (PEFT's
/// Kaiming), B = 0.
/// Source: Hu et al. 2021, arXiv 2106.09685.
class Lora {
 public:
  /// Errors: invalid_argument (a rank below 1, a target that no matrix has, naming those there are).
  Lora(Parameters& weights, const LoraSettings& settings);

  Parameters& adapters() { return adapters_; }  ///< "NAME.lora_A" [r, d_in], "NAME.lora_B" [d_out, r]
  const LoraSettings& settings() const { return settings_; }
  /// Module names as PEFT lists them: "q_proj".
  std::vector<std::string> target_modules() const;

  void form_gradients(ThreadPool& pool);  ///< from the weights' gradients: overwrites the adapters'
  void form_weights(ThreadPool& pool);    ///< W_eff from W, A and B

 private:
  struct Adapted {
    Parameter* weight;
    size_t a, b;                ///< indices into adapters_
    std::vector<float> frozen;  ///< W
  };
  LoraSettings settings_;
  std::vector<Adapted> adapted_;
  Parameters adapters_;
};

/// "model.layers.3.self_attn.q_proj.weight" → "q_proj".
std::string module_name(const std::string& parameter);

}  // namespace liuli
