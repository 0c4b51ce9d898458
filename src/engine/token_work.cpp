// What tokens ask of a machine, counted from the weights as they are held.
#include <cmath>

#include "engine/engine_parts.h"
#include "liuli/machine_limits.h"

namespace liuli {
namespace {

double bytes_of(const Matrix& m) {
  return static_cast<double>(m.has_panels() ? static_cast<int64_t>(m.run_bytes()) : m.bytes());
}
double ops_of(const Matrix& m) {
  return 2.0 * static_cast<double>(m.d_out()) * static_cast<double>(m.d_in());
}

// Matrices that every token goes through, and those of which it chooses some.
struct Sums {
  double bytes = 0, ops = 0;
  void add(const Matrix& m, double bytes_share, double ops_share) {
    if (m.empty()) return;
    bytes += bytes_share * bytes_of(m);
    ops += ops_share * ops_of(m);
  }
};

void add_attention(const Attention& a, Sums& sums) {
  for (const Linear* linear : {&a.q, &a.k, &a.v, &a.o}) sums.add(linear->weight, 1, 1);
}

// Of the two forms of k_up a pass reads one.
void add_attention(const LatentAttention& a, Sums& sums) {
  for (const Linear* linear : {&a.q_a, &a.q_b, &a.kv_a, &a.o}) sums.add(linear->weight, 1, 1);
  for (const auto* heads : {&a.k_up, &a.v_up})
    for (const Matrix& m : *heads) sums.add(m, 1, 1);
}

void add_feed_forward(const FeedForward& f, Sums& sums, double bytes_share = 1, double ops_share = 1) {
  for (const Linear* linear : {&f.gate, &f.up, &f.down}) sums.add(linear->weight, bytes_share, ops_share);
}

// Of n experts `rows` tokens that choose k each meet n (1 − (1 − k/n)^rows), if they choose evenly.
void add_experts(const MixtureOfExperts& moe, double rows, Sums& sums) {
  const double share =
      static_cast<double>(moe.shape.n_experts_active) / static_cast<double>(moe.shape.n_experts);
  sums.add(moe.router.weight, 1, 1);
  for (const FeedForward& expert : moe.experts)
    add_feed_forward(expert, sums, 1 - std::pow(1 - share, rows), share);
  add_feed_forward(moe.shared, sums);
}

void add_feed_forward(const Block& block, double rows, Sums& sums) {
  if (const auto* moe = std::get_if<MixtureOfExperts>(&block.ffn))
    add_experts(*moe, rows, sums);
  else
    add_feed_forward(std::get<FeedForward>(block.ffn), sums);
}

void add_block(const Block& block, double rows, Sums& sums) {
  std::visit([&](const auto& attention) { add_attention(attention, sums); }, block.attention);
  if (block.cross) add_attention(*block.cross, sums);
  add_feed_forward(block, rows, sums);
}

// Products behind a block's keys and values, but its queries.
Sums behind_keys(const ModelConfig& config, const Block& block, double rows) {
  Sums sums;
  if (!config.causal || config.is_encoder_decoder()) return sums;
  std::visit([&](const auto& attention) { sums.add(attention.o.weight, 1, 1); }, block.attention);
  add_feed_forward(block, rows, sums);
  return sums;
}

// Keys that n tokens behind `depth` others see together: of each token those within the window, itself included.
double visible_keys(int64_t depth, int64_t n, int64_t window) {
  double keys = 0;
  for (int64_t i = 1; i <= n; i++)
    keys += static_cast<double>(window > 0 ? std::min(depth + i, window) : depth + i);
  return keys;
}

// Multiplications and additions of one query and one key, over all heads.
double ops_per_key(const ModelConfig& c, bool generated) {
  const auto heads = static_cast<double>(c.n_heads);
  if (!c.is_latent()) return 4.0 * heads * static_cast<double>(c.head_dim);
  const LatentConfig& l = c.latent;
  const int64_t expanded = l.qk_nope_head_dim + l.qk_rope_head_dim + l.v_head_dim;
  const int64_t absorbed = 2 * l.kv_lora_rank + l.qk_rope_head_dim;
  return 2.0 * heads * static_cast<double>(generated ? absorbed : expanded);
}

}  // namespace

TokenWork token_work(const Engine& engine, int64_t depth, int64_t n, int64_t together) {
  const ModelConfig& config = engine.config();
  const Model& model = *engine.parts().model;
  Sums sums;
  for (const Block& block : model.blocks) add_block(block, static_cast<double>(together), sums);
  TokenWork work;
  work.weight_bytes = sums.bytes;
  work.product_ops = static_cast<double>(n) * sums.ops;
  if (config.has_output) {
    work.weight_bytes += bytes_of(model.output());
    work.output_ops = static_cast<double>(n) * ops_of(model.output());
  }
  const double per_key = ops_per_key(config, n == 1 || together < n);
  const double key_bytes =
      static_cast<double>(engine.plan(1).cache_bytes_per_token) / static_cast<double>(config.n_layers);
  for (const LayerPlan& layer : config.layers) {
    const double keys = visible_keys(depth, n, layer.sliding_window);
    work.attention_ops += keys * per_key;
    work.cache_bytes += keys * key_bytes;
  }
  if (const double ops = behind_keys(config, model.blocks.back(), static_cast<double>(together)).ops;
      ops > 0) {
    const double keys = visible_keys(depth, n, config.layers.back().sliding_window);
    work.last_block_ops = static_cast<double>(n) * ops + keys * per_key;
  }
  return work;
}

}  // namespace liuli
