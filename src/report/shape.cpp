#include "report/shape.h"

#include <fmt/core.h>

#include <algorithm>

#include "liuli/error.h"

namespace liuli {
namespace {

/// Bytes per token of every form that applies; gives back the smallest.
int64_t add_cache_forms(ModelShape& shape, const AttentionSizes& a) {
  const auto n_layers = static_cast<int64_t>(a.windows.size());
  const auto bytes = [&](int64_t width) { return cached_bytes(shape.cache_type, width); };
  const int64_t pair = n_layers * (bytes(a.key_width) + bytes(a.value_width));
  shape.cache_plain = a.n_heads * pair;
  if (a.n_kv_heads < a.n_heads) shape.cache_grouped = a.n_kv_heads * pair;
  shape.cache_latent = n_layers * bytes(a.latent_key_width);
  if (shape.cache_latent > 0) return shape.cache_latent;
  return shape.cache_grouped > 0 ? shape.cache_grouped : shape.cache_plain;
}

}  // namespace

int64_t counted_context(int64_t asked, int64_t trained) {
  constexpr int64_t kUsual = 4096;
  if (asked < 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("context is {}, it must be 0 or more", asked));
  return asked > 0 ? asked : std::min(kUsual, trained);
}

void add_parameters(ModelShape& shape, const std::vector<CountedTensor>& tensors) {
  for (const CountedTensor& tensor : tensors) {
    const std::string name = part_name(tensor.part);
    auto part = std::find_if(shape.parts.begin(), shape.parts.end(),
                             [&](const ShapePart& p) { return p.name == name; });
    if (part == shape.parts.end()) part = shape.parts.insert(part, {name, 0, 0});
    part->parameters += tensor.elements;
    part->active += tensor.active_elements();
    if (tensor.multiplies) shape.product_flops += 2 * static_cast<double>(tensor.active_elements());
  }
  for (const ShapePart& part : shape.parts) {
    shape.parameters += part.parameters;
    shape.active_parameters += part.active;
  }
}

/// A score and a weighted value cost one multiplication and one addition per number of key and value.
void add_attention(ModelShape& shape, const AttentionSizes& a) {
  const int64_t per_token = a.cached ? add_cache_forms(shape, a) : 0;
  const auto n_layers = static_cast<int64_t>(a.windows.size());
  const double per_key = 2.0 * static_cast<double>(a.n_heads * (a.key_width + a.value_width));
  shape.attention_flops = per_key * static_cast<double>(n_layers);
  shape.attention_flops_latent =
      2.0 * static_cast<double>(n_layers * a.n_heads * (a.latent_key_width + a.latent_width));
  shape.flops_at_context = shape.product_flops;
  for (const int64_t window : a.windows) {
    const int64_t keys = window > 0 ? std::min(window, shape.context) : shape.context;
    shape.cache_bytes += per_token / n_layers * shape.context;
    shape.cache_bytes_windowed += per_token / n_layers * keys;
    shape.flops_at_context += per_key * static_cast<double>(keys);
  }
}

}  // namespace liuli
