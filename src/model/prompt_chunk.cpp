#include "model/prompt_chunk.h"

#include <algorithm>

#include "core/rows.h"

namespace liuli {
namespace {

constexpr int kLongestChunk = 2048;
constexpr int64_t kRowsPerExpert = 96;

// Floats that attention holds per token: q, k, v, z.
int64_t attention_width(const ModelConfig& c) {
  const LatentConfig& l = c.latent;
  if (!c.is_latent()) return 2 * (c.n_heads + c.n_kv_heads) * c.head_dim;
  const int64_t head = l.qk_nope_head_dim + l.qk_rope_head_dim;
  return c.n_heads * (head + l.v_head_dim) + l.q_lora_rank + 2 * (l.kv_lora_rank + l.qk_rope_head_dim);
}

// Gate and up of a dense layer; of experts what leads to the choice, and one expert's rows if it got all tokens.
int64_t feed_forward_width(const ModelConfig& c) {
  const ExpertConfig& e = c.experts;
  int64_t width = 0;
  for (const LayerPlan& layer : c.layers)
    width = std::max(width, layer.routed
                                ? 6 * e.n_experts + 2 * (c.d_model + e.d_ff) + 2 * e.shared_d_ff + c.d_model
                                : 2 * c.d_ff);
  return width;
}

}  // namespace

int64_t pass_bytes(const ModelConfig& c, int64_t n) {
  constexpr int64_t kBesides = int64_t{8} << 20;  // kernels' scratch, lists, logits of one token
  const int64_t stream = 5 * c.d_model;           // x, and each half's norm and output
  const int64_t inner = std::max(attention_width(c), feed_forward_width(c));
  const int64_t widest = std::max({c.d_model, c.d_ff, c.n_heads * c.head_dim});
  const int64_t packed =
      std::min<int64_t>(n, kDenseChunk) * widest * 3;  // a product's input in 16 bits, with padding
  return n * (stream + inner) * int64_t{sizeof(float)} + packed + kBesides;
}

int prompt_chunk(const Model& model) {
  const ExpertConfig& e = model.config.experts;
  int64_t weights = 0;
  model.for_each_matrix([&](const Matrix& m) { weights += static_cast<int64_t>(m.run_bytes()); });
  int chunk = kDenseChunk;
  while (chunk < kLongestChunk && chunk * e.n_experts_active < kRowsPerExpert * e.n_experts &&
         pass_bytes(model.config, 2 * chunk) <= weights / 10)
    chunk *= 2;
  return chunk;
}

}  // namespace liuli
