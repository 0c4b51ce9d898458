#include "model/transformer.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "liuli/error.h"
#include "model/block.h"
#include "model/shown_rows.h"
#include "ops/activation.h"
#include "ops/embedding.h"
#include "ops/linear.h"

namespace liuli {

void StepLists::clear() {
  for (auto* list : {&tokens, &types, &positions}) list->clear();
  for (auto* list : {&sequences, &over_source}) list->clear();
  angles.clear();
  last_row_indices.clear();
}

void Step::show(const Place& place, Rows rows) const {
  if (listener->wants(place))
    listener->see({place, rows, sequences.empty() ? 0 : sequences.front().first_position});
}

Rows Step::kept_rows(Rows rows) const {
  for (size_t i = 0; i < last_row_indices.size(); i++)
    std::memmove(rows.row(static_cast<int64_t>(i)), rows.row(last_row_indices[i]),
                 static_cast<size_t>(rows.width) * sizeof(float));
  return rows.slice(0, static_cast<int64_t>(last_row_indices.size()));
}

Rows Step::keep_rows(Rows rows) {
  if (kept == RowsKept::all) return rows;
  if (kept == RowsKept::none) return rows.slice(0, 0);
  positions.clear();
  for (SequenceRows& sequence : sequences) {
    const int64_t behind = sequence.n_rows - 1;
    last_row_indices.push_back(sequence.first_row + behind);
    sequence.first_position += static_cast<int>(behind);
    sequence.first_row = static_cast<int64_t>(positions.size());
    sequence.n_rows = 1;
    positions.push_back(sequence.first_position);
  }
  return kept_rows(rows);
}

CacheType cache_type_in(ProductClass product_class, CacheType form) {
  const bool rounds = product_class == ProductClass::prompt || product_class == ProductClass::decode;
  return rounds ? form : CacheType::f32;
}

const kernels::AttentionKernels& attention_kernels(ProductClass product_class, CacheType form) {
  if (product_class == ProductClass::exact) return kernels::exact_attention();
  const auto& table = kernels::best_kernels();
  switch (cache_type_in(product_class, form)) {
    case CacheType::f32:
      return table.attention_f32;
    case CacheType::f16:
      return table.attention_f16;
    case CacheType::q8_0:
      return table.attention_q8_0;
    case CacheType::q4_0:
      return table.attention_q4_0;
    case CacheType::automatic:
    case CacheType::bf16:
      break;
  }
  return table.attention;
}

CacheShape cache_shape(const ModelConfig& config) {
  const LatentConfig& latent = config.latent;
  if (config.is_latent())  // per token one compressed vector, and one rotated key for all heads
    return {config.n_layers, 1, static_cast<int>(latent.kv_lora_rank + latent.qk_rope_head_dim),
            static_cast<int>(latent.kv_lora_rank), true};
  return {config.causal ? config.n_layers : 1, config.n_kv_heads, static_cast<int>(config.head_dim),
          static_cast<int>(config.head_dim)};
}

CacheShape source_cache_shape(const ModelConfig& config) {
  return {config.n_layers, config.n_kv_heads, static_cast<int>(config.head_dim),
          static_cast<int>(config.head_dim)};
}

OpContext make_context(Runner& runner, ProductClass product_class, CacheType form) {
  const auto& table = kernels::best_kernels();
  return {table,
          product_class == ProductClass::exact ? kernels::exact_rows() : table.rows,
          attention_kernels(product_class, form),
          runner.pool,
          runner.scratch,
          product_class,
          runner.bf16_products,
          runner.int8_prompts};
}

namespace {

// Lends a runner's lists to a step and takes them back, emptied.
class LentLists {
 public:
  LentLists(StepLists& kept, Step& s) : kept_(kept), step_(s) { std::swap(kept_, lists()); }
  ~LentLists() {
    std::swap(kept_, lists());
    kept_.clear();
  }
  LentLists(const LentLists&) = delete;
  LentLists& operator=(const LentLists&) = delete;

 private:
  StepLists& lists() { return step_; }
  StepLists& kept_;
  Step& step_;
};

// Lays the inputs' tokens one after another and makes room in their caches.
void place_sequences(std::span<const SequenceInput> inputs, Step& s) {
  for (const SequenceInput& input : inputs) {
    LIULI_CHECK(&input.cache->kernels() == &s.ops.attention);
    const int first = input.cache->length(), n = static_cast<int>(input.tokens.size());
    const auto row = static_cast<int64_t>(s.tokens.size());
    s.sequences.push_back({input.cache, row, n, first, first + n});
    if (input.source != nullptr)
      s.over_source.push_back({input.source, row, n, first, input.source->length()});
    input.cache->extend(n, s.ops.product_class);
    for (int i = 0; i < n; i++) s.positions.push_back(first + i);
    s.tokens.insert(s.tokens.end(), input.tokens.begin(), input.tokens.end());
    s.types.insert(s.types.end(), input.token_types.begin(), input.token_types.end());
    s.types.resize(s.tokens.size());
  }
  LIULI_CHECK(!s.tokens.empty() &&
              (s.listener == nullptr || inputs.size() == 1 || s.listener->sees_batches()));
}

// x += what `fill` writes, shown by its own name.
template <class F>
void add_shown(Step& s, Point point, Rows x, F&& fill) {
  const Arena::Scope scratch(s.ops.scratch);
  Rows rows = make_rows(s.ops.scratch, x.n, x.width);
  fill(rows);
  s.probe(point, -1, rows);
  add_in_place(s.ops, x, rows, 1.0f);
}

// x = norm(scale · W_E[token] + W_pos[position] + W_type[segment]), as far as the family has these parts.
void embed(const Model& model, Step& s, Rows x) {
  const ModelConfig& c = model.config;
  embedding_forward(s.ops, model.token_embedding, s.tokens, static_cast<float>(c.embedding_scale), x);
  // The 2017 Transformer has no name for the embedding without its position.
  if (c.positions == PositionTable::sinusoidal)
    add_shown(s, Point::pos_embed, x, [&](Rows rows) { sinusoid_forward(s.ops, s.positions, rows); });
  s.probe(Point::embed, -1, x);
  if (c.positions == PositionTable::learned)
    add_shown(s, Point::pos_embed, x, [&](Rows rows) {
      embedding_forward(s.ops, model.position_embedding, s.positions, 1.0f, rows);
    });
  if (c.n_token_types > 0)
    add_shown(s, Point::type_embed, x,
              [&](Rows rows) { embedding_forward(s.ops, model.token_types, s.types, 1.0f, rows); });
  if (c.embedding_norm == NormKind::none) return;
  s.probe(Point::embed_sum, -1, x);
  norm_in_place(model.embedding_norm, NormSite::embed_ln, -1, x, s);
}

// The rows of the last block that anybody needs: its keys and values, for the cache, are those of all.
RowsKept rows_of_last_block(const ModelConfig& config, const StepOptions& options) {
  const bool all = options.listener != nullptr || options.every_logit || options.stop_at_layer >= 0 ||
                   !config.causal || config.is_encoder_decoder();
  if (all) return RowsKept::all;
  return options.no_logits ? RowsKept::none : RowsKept::last_of_each;
}

// The inputs' residual stream after one tower's last block, of the rows that block kept.
Rows run_tower(const Model& model, std::span<const Block> blocks, std::span<const SequenceInput> inputs,
               RowsKept in_last_block, Step& s) {
  place_sequences(inputs, s);
  const ModelConfig& config = model.config;
  const auto n = static_cast<int64_t>(s.tokens.size());
  for (size_t i = 0; i < config.ropes.size(); i++)
    s.angles.push_back(rope_angles(s.ops, config.ropes[i], model.rope_frequencies[i], s.positions.data(), n));
  Rows x = make_rows(s.ops.scratch, n, config.d_model);
  embed(model, s, x);
  const bool more_than_last = n > static_cast<int64_t>(inputs.size());
  for (size_t layer = 0; layer < blocks.size(); layer++) {
    if (layer + 1 == blocks.size() && more_than_last) s.kept = in_last_block;
    x = block_forward(blocks[layer], static_cast<int>(layer), x, s);
  }
  return x;
}

// tanh(W x + b) of a text's first row: nobody needs it to go on, so it is formed for those who watch.
void show_pooler(const Model& model, Step& s, Rows x) {
  if (!model.config.has_pooler || !s.listening(Point::pooler, -1) || s.positions.front() != 0) return;
  const Arena::Scope scratch(s.ops.scratch);
  Rows pooled = make_rows(s.ops.scratch, 1, x.width);
  linear_forward(s.ops, x.slice(0, 1), {LinearJob{&model.pooler.weight, model.pooler.bias, pooled}});
  for (int64_t j = 0; j < x.width; j++) pooled.data[j] = std::tanh(pooled.data[j]);
  Rows shown = make_rows(s.ops.scratch, 1, x.width);
  std::memcpy(shown.data, pooled.data, static_cast<size_t>(x.width) * sizeof(float));
  s.probe(Point::pooler, -1, shown);
  if (std::memcmp(shown.data, pooled.data, static_cast<size_t>(x.width) * sizeof(float)) != 0)
    throw Error(ErrorCode::unsupported,
                "pooler cannot be changed: it is formed for show; change the stream before it");
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

Rows unembed(const Model& model, Step& s, Rows x) { return unembed(model, s, x, model.output()); }

Rows unembed(const Model& model, Step& s, Rows x, const Matrix& output) {
  Rows logits = rows_to_show(s, Point::logits, -1, x.n, output.d_out());
  const Arena::Scope scratch(s.ops.scratch);
  Rows h = normalized(model.final_norm, NormSite::ln_final, -1, x, s);
  linear_forward(s.ops, h, {LinearJob{&output, nullptr, logits}});
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
  OpContext ops = make_context(runner, options.product_class, model.cache_form);
  Step s(ops, options.listener);
  const LentLists lent(runner.lists, s);
  if (model.config.is_encoder_decoder()) s.stack = Stack::decoder;
  std::span<const Block> blocks = model.blocks;
  const bool stops = options.stop_at_layer >= 0;
  if (stops) blocks = blocks.first(std::min(blocks.size(), static_cast<size_t>(options.stop_at_layer)));
  Rows x = run_tower(model, blocks, inputs, rows_of_last_block(model.config, options), s);
  s.stack = Stack::blocks;
  if (stops) return {};
  show_pooler(model, s, x);
  if (options.no_logits) return {};
  Rows wanted = wanted_rows(x, options, s);
  if (options.hidden || !model.config.has_output)
    return normalized(model.final_norm, NormSite::ln_final, -1, wanted, s);
  return unembed(model, s, wanted);
}

void encode_source(const Model& model, Runner& runner, std::span<const int> tokens, KvCache& source,
                   const StepOptions& options) {
  runner.scratch.release({});
  OpContext ops = make_context(runner, options.product_class, model.cache_form);
  Step s(ops, options.listener);
  s.stack = Stack::encoder;
  CacheShape one_layer = source_cache_shape(model.config);
  one_layer.n_layers = 1;
  KvCache cache(one_layer, ops.attention);
  const SequenceInput input{&cache, tokens};
  Rows encoded = run_tower(model, model.encoder, {&input, 1}, RowsKept::all, s);
  source.truncate(0);
  source.extend(static_cast<int>(tokens.size()), options.product_class);
  s.over_source = {{&source, 0, encoded.n, 0, source.length()}};
  for (size_t layer = 0; layer < model.blocks.size(); layer++)
    if (model.blocks[layer].cross)
      cross_attention_source(*model.blocks[layer].cross, static_cast<int>(layer), encoded, s);
}

}  // namespace liuli
