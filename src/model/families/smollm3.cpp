// SmolLM3: Llama's block; every fourth layer attends without positions (NoPE).
#include <fmt/format.h>

#include "model/families/decoder_tensors.h"
#include "model/families/window_plan.h"

namespace liuli {
namespace {

constexpr int64_t kNoRopeEvery = 4;  // not stored in GGUF files

// 1 for the layers that turn queries and keys.
std::vector<int64_t> read_rope_layers(ConfigReader& reader, int64_t n_layers) {
  const Key list{nullptr, "no_rope_layers"};  // whose ones mark the layers with RoPE
  const int64_t every = reader.count_or({nullptr, "no_rope_layer_interval"}, kNoRopeEvery, 1 << 20);
  std::vector<int64_t> turns = reader.integers_or_none(list);
  if (turns.empty())
    for (int64_t i = 0; i < n_layers; i++) turns.push_back((i + 1) % every != 0 ? 1 : 0);
  if (static_cast<int64_t>(turns.size()) < n_layers)
    reader.corrupt(list, fmt::format("has {} entries for {} layers", turns.size(), n_layers));
  return turns;
}

ModelConfig read_config(ConfigReader& reader) {
  ModelConfig c = reader.common("smollm3");
  c.activation = reader.activation_or(Activation::silu);
  c.ropes = {reader.rope(c.head_dim), RopeConfig{}};  // the second has dim 0: nothing turns
  const std::vector<int64_t> turns = read_rope_layers(reader, c.n_layers);
  const int64_t window = reader.count_or_zero({nullptr, "sliding_window"}, 0, 1 << 30);
  const bool use_window = reader.flag_or({nullptr, "use_sliding_window"}, false);
  const std::vector<bool> windowed = read_windowed_layers(reader, c.n_layers);
  for (int64_t i = 0; i < c.n_layers; i++) {
    const auto at = static_cast<size_t>(i);
    LayerPlan& layer = c.layers.emplace_back();
    layer.attn_norm.before = layer.ffn_norm.before = NormKind::rms;
    layer.rope = turns[at] != 0 ? 0 : 1;
    if (use_window && (windowed.empty() ? turns[at] == 0 : windowed[at]))
      layer.sliding_window = static_cast<int>(window);
  }
  return c;
}

std::vector<TensorSpec> list_tensors(const ModelConfig& c, Naming naming) {
  std::vector<TensorSpec> t = decoder_tensors(c, naming);
  add_optional_biases(c, t);
  undo_interleaving(c, naming, t);
  return t;
}

}  // namespace

const Family kSmolLm3 = {"smollm3", "smollm3", read_config, list_tensors, {}, is_rope_buffer};

}  // namespace liuli
