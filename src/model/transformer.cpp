#include "model/transformer.h"

#include "core/check.h"
#include "model/block.h"
#include "ops/activation.h"
#include "ops/embedding.h"
#include "ops/linear.h"

namespace liuli {

void Step::show(const Place& place, Rows rows) const {
  if (listener->wants(place))
    listener->see({place, rows, sequences.empty() ? 0 : sequences.front().first_position});
}

const kernels::AttentionKernels& attention_kernels(ProductClass product_class) {
  if (product_class == ProductClass::exact) return kernels::exact_attention();
  const auto& table = kernels::best_kernels();
  return product_class == ProductClass::f32 ? table.attention_f32 : table.attention;
}

CacheShape cache_shape(const ModelConfig& config) {
  return {config.n_layers, config.n_kv_heads, static_cast<int>(config.head_dim),
          static_cast<int>(config.head_dim)};
}

OpContext make_context(Runner& runner, ProductClass product_class) {
  const auto& table = kernels::best_kernels();
  return {table,
          product_class == ProductClass::exact ? kernels::exact_rows() : table.rows,
          attention_kernels(product_class),
          runner.pool,
          runner.scratch,
          product_class};
}

namespace {

// Lays the inputs' tokens one after another and makes room in their caches.
std::vector<int> place_sequences(std::span<const SequenceInput> inputs, Step& s) {
  std::vector<int> tokens;
  for (const SequenceInput& input : inputs) {
    LIULI_CHECK(&input.cache->kernels() == &s.ops.attention);
    const int first = input.cache->length(), n = static_cast<int>(input.tokens.size());
    s.sequences.push_back({input.cache, static_cast<int64_t>(tokens.size()), n, first});
    input.cache->extend(n, s.ops.product_class);
    for (int i = 0; i < n; i++) s.positions.push_back(first + i);
    tokens.insert(tokens.end(), input.tokens.begin(), input.tokens.end());
  }
  return tokens;
}

// x += W_pos[position]
void add_positions(const Model& model, Step& s, Rows x) {
  const Arena::Scope scratch(s.ops.scratch);
  Rows rows = make_rows(s.ops.scratch, x.n, x.width);
  embedding_forward(s.ops, model.position_embedding, s.positions, 1.0f, rows);
  s.probe(Point::pos_embed, -1, rows);
  add_in_place(s.ops, x, rows, 1.0f);
}

Rows wanted_rows(Rows x, const StepOptions& options, const Step& s) {
  if (options.every_logit) return x;
  if (s.sequences.size() == 1) return x.slice(x.n - 1, 1);
  Rows wanted = make_rows(s.ops.scratch, static_cast<int64_t>(s.sequences.size()), x.width);
  for (size_t i = 0; i < s.sequences.size(); i++)
    std::memcpy(wanted.row(static_cast<int64_t>(i)),
                x.row(s.sequences[i].first_row + s.sequences[i].n_rows - 1),
                static_cast<size_t>(x.width) * sizeof(float));
  return wanted;
}

}  // namespace

Rows unembed(const Model& model, Step& s, Rows x) {
  Rows logits = make_rows(s.ops.scratch, x.n, model.config.vocab_size);
  const Arena::Scope scratch(s.ops.scratch);
  Rows h = normalized(model.final_norm, NormSite::ln_final, -1, x, s);
  linear_forward(s.ops, h, {LinearJob{&model.output(), nullptr, logits}});
  if (model.config.final_soft_cap > 0)
    for_each_row(s.ops, logits.n, [&](int64_t i) {
      s.ops.rows.soft_cap(logits.row(i), static_cast<float>(model.config.final_soft_cap), logits.width);
    });
  s.probe(Point::logits, -1, logits);
  return logits;
}

Rows transformer_forward(const Model& model, Runner& runner, std::span<const SequenceInput> inputs,
                         const StepOptions& options) {
  runner.scratch.release({});
  OpContext ops = make_context(runner, options.product_class);
  Step s(ops, options.listener);
  const std::vector<int> tokens = place_sequences(inputs, s);
  LIULI_CHECK(!tokens.empty() && (options.listener == nullptr || inputs.size() == 1));
  const ModelConfig& config = model.config;
  for (size_t i = 0; i < config.ropes.size(); i++)
    s.angles.push_back(rope_angles(ops, config.ropes[i], model.rope_frequencies[i], s.positions.data(),
                                   static_cast<int64_t>(s.positions.size())));

  Rows x = make_rows(runner.scratch, static_cast<int64_t>(tokens.size()), config.d_model);
  embedding_forward(ops, model.token_embedding, tokens, static_cast<float>(config.embedding_scale), x);
  s.probe(Point::embed, -1, x);
  if (config.positions == PositionTable::learned) add_positions(model, s, x);
  for (int layer = 0; layer < config.n_layers; layer++)
    block_forward(model.blocks[static_cast<size_t>(layer)], layer, x, s);
  if (options.no_logits) return {};
  return unembed(model, s, wanted_rows(x, options, s));
}

}  // namespace liuli
