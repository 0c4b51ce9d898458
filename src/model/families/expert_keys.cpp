#include "model/families/expert_keys.h"

#include <algorithm>

#include <fmt/format.h>

namespace liuli {
namespace {

constexpr int64_t kMaxExperts = 1 << 16, kMaxWidth = int64_t{1} << 24;

bool has_router(const ConfigReader& reader, int64_t layer) {
  return reader.find_tensor(fmt::format("blk.{}.ffn_gate_inp.weight", layer).c_str(), nullptr) != nullptr;
}

}  // namespace

ExpertConfig read_softmax_experts(ConfigReader& reader, const ModelConfig& config) {
  ExpertConfig e;
  e.n_experts = reader.count({"expert_count", "num_local_experts|num_experts"}, kMaxExperts);
  const Key active{"expert_used_count", "num_experts_per_tok"};
  e.n_experts_active = reader.count(active, kMaxExperts);
  if (e.n_experts_active > e.n_experts)
    reader.corrupt(active, fmt::format("is {}, there are {} experts", e.n_experts_active, e.n_experts));
  e.d_ff = reader.count_or({"expert_feed_forward_length", "moe_intermediate_size"}, config.d_ff, kMaxWidth);
  const Key function{"expert_gating_func", nullptr};
  if (const int64_t id = reader.count_or_zero(function, 1, 1 << 20); id > 1)
    reader.refuse(function, fmt::format("is {}, expected 1 (softmax)", id));
  e.weight_scale = reader.number_or({"expert_weights_scale", nullptr}, 1);
  if (e.weight_scale == 0) e.weight_scale = 1;  // what writers put where there is no scale
  return e;
}

void read_routed_layers(ConfigReader& reader, ModelConfig& config) {
  const int64_t step = reader.count_or({nullptr, "decoder_sparse_step"}, 1, 1 << 20);
  const std::vector<int64_t> dense = reader.integers_or_none({nullptr, "mlp_only_layers"});
  for (int64_t i = 0; i < config.n_layers; i++)
    config.layers[static_cast<size_t>(i)].routed =
        reader.is_gguf() ? has_router(reader, i)
                         : (i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end();
}

}  // namespace liuli
