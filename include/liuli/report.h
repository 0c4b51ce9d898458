// What a run or a file looks like from outside, as data: the CLI prints it, --json writes it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "liuli/norm_kind.h"

namespace liuli {

/// One storey, as seen at the prompt's last token.
struct BlockReport {
  int layer = 0;
  double resid_norm = 0;  ///< ‖resid_post‖₂
  double attn_norm = 0;   ///< ‖attn_out‖₂: what attention added
  double mlp_norm = 0;    ///< ‖mlp_out‖₂
  int lens_token =
      0;  ///< the likeliest token if the model stopped here (logit lens: final norm and output matrix)
  std::string lens_text;
  double lens_probability = 0;
  double chosen_probability = 0;  ///< what the lens gives the token that was finally chosen
};

/// How the first new token came about, from the run's own numbers.
struct FirstTokenReport {
  int prompt_token = 0;  ///< the last token of the prompt
  std::string prompt_text;
  double embed_norm = 0;
  std::vector<BlockReport> blocks;
  int chosen_token = 0;  ///< what was sampled
  std::string chosen_text;
  double chosen_probability = 0;
  /// The first block's norm of that token: the row that went in, γ, β (empty for rms), eps.
  NormKind norm_kind = NormKind::rms;
  std::vector<float> norm_row, norm_gamma, norm_beta;
  double norm_eps = 0;
};

/// One weight of a plan.
struct PlannedWeight {
  std::string name, type;      ///< tensor and stored type
  std::vector<int64_t> shape;  ///< [d_out, d_in]
  std::string layout;          ///< "granules": 16 rows interleaved in place; "rows": as in the file
  std::string kernel;          ///< what multiplies it
  bool fast = false;           ///< false: by way of scalar code or expansion
  int64_t file_bytes = 0, run_bytes = 0;
  std::string why;  ///< the reason for this kernel, in words
};

struct ModelPlan {
  std::string isa, prompt_kernel, attention_kernel;
  std::string cache_type;                     ///< "bf16", …: see CacheType
  std::string prompt_class, generated_class;  ///< product classes in use
  std::string prompt_products;                ///< "bf16", "int8"; "" where prompts run in another class
  std::vector<PlannedWeight> weights;
  int64_t weight_bytes = 0;  ///< as held in memory
  int64_t cache_bytes_per_token = 0;
  int64_t context = 0, cache_bytes = 0;  ///< for the planned context
  int prompt_chunk = 0;                  ///< tokens of a prompt that pass through the model together
  int64_t pass_bytes = 0;                ///< what such a pass holds besides, at most
  int threads = 1;
  std::string panel_file;  ///< from which the weights are mapped; "": packed while loading
};

}  // namespace liuli
