#include <cmath>

#include <fmt/format.h>

#include "trace/number_explainers.h"
#include "trace/stream_places.h"

namespace liuli::numbers {
namespace {

int token_id(Calculation& c, int64_t token) {
  const auto& ids = c.place().stack == Stack::encoder ? c.run().source : c.run().tokens;
  return ids[static_cast<size_t>(token)];
}

// A value that is another one, by another name.
void explain_same(Calculation& c, const Place& place, const std::vector<int64_t>& index) {
  c.add_term(place, index);
  c.set_formula(place.name());
  c.finish_sum("the same value");
}
void explain_same(Calculation& c, Point point) { explain_same(c, c.beside(point), {c.index(0), c.index(1)}); }

// One number of a stored table, times `factor`.
void add_table_number(Calculation& c, const NamedMatrix& table, int64_t row, double factor) {
  const int64_t column = c.index(1);
  std::vector<float> values(static_cast<size_t>(table.weight->d_in()));
  std::vector<uint8_t> stored;
  table.weight->decode_row(row, values.data(), stored);
  const auto w = static_cast<double>(values[static_cast<size_t>(column)]);
  std::vector<NumberOperand> operands;
  if (factor != 1) operands.push_back(Calculation::named("embedding_scale", factor));
  c.add_weight_term(std::move(operands), {table, row, column, w, w}, factor * w);
}

void add_embeddings(Calculation& c) {
  const ModelConfig& config = c.config();
  const Stack stack = c.place().stack;
  const std::vector<int64_t> index{c.index(0), c.index(1)};
  c.add_term({Point::embed, -1, stack}, index);
  if (config.positions == PositionTable::learned) c.add_term({Point::pos_embed, -1, stack}, index);
  if (config.n_token_types > 0) c.add_term({Point::type_embed, -1, stack}, index);
}

// residual_scale · stream + branch
void explain_addition(Calculation& c, const Place& stream, Point branch) {
  const std::vector<int64_t> index{c.index(0), c.index(1)};
  const auto scale = static_cast<double>(c.block().residual_scale);
  const NumberOperand x = c.operand(stream, index);
  if (scale == 1)
    c.add_term({x}, x.value);
  else
    c.add_term({Calculation::named("residual_scale", scale), x}, scale * x.value);
  c.add_term(c.beside(branch), index);
  c.set_formula(fmt::format("{}{} + {}", scale == 1 ? "" : "residual_scale · ", stream.name(),
                            c.beside(branch).name()));
  c.finish_sum("sum");
}

}  // namespace

void explain_embed(Calculation& c) {
  const auto scale = static_cast<double>(static_cast<float>(c.config().embedding_scale));
  const int64_t token = c.index(0);
  add_table_number(c, {"embed", &c.run().model.token_embedding}, token_id(c, token), scale);
  if (c.config().positions == PositionTable::sinusoidal)
    c.add_term({Point::pos_embed, -1, c.place().stack}, {token, c.index(1)});
  c.set_formula(fmt::format("embedding_scale · W_E[token {}]{}", token_id(c, token),
                            c.config().positions == PositionTable::sinusoidal ? " + pos_embed" : ""));
  c.finish_sum("embedding");
}

void explain_pos_embed(Calculation& c) {
  const int64_t position = c.index(0), d = c.index(1);
  if (c.config().positions == PositionTable::learned) {
    add_table_number(c, {"pos_embed", &c.run().model.position_embedding}, position, 1);
    return c.finish_sum("embedding");
  }
  const auto width = static_cast<double>(c.config().d_model);
  const double frequency = std::pow(10000.0, -static_cast<double>(d - d % 2) / width);
  const double angle = static_cast<double>(position) * frequency;
  c.add_term({Calculation::named("position", static_cast<double>(position)),
              Calculation::named(fmt::format("10000^(−{}/{})", d - d % 2, c.config().d_model), frequency)},
             angle);
  const bool is_sine = d % 2 == 0;
  const double value = is_sine ? std::sin(angle) : std::cos(angle);
  c.step(is_sine ? "sin" : "cos", value);
  c.set_kind("position");
  c.finish(value, 1);
}

void explain_type_embed(Calculation& c) {
  const auto& types = c.run().token_types;
  const int64_t type = types.empty() ? 0 : types[static_cast<size_t>(c.index(0))];
  add_table_number(c, {"type_embed", &c.run().model.token_types}, type, 1);
  c.finish_sum("embedding");
}

void explain_embed_sum(Calculation& c) {
  add_embeddings(c);
  c.finish_sum("sum");
}

void explain_resid_pre(Calculation& c) {
  const Stack stack = c.place().stack;
  const std::vector<int64_t> index{c.index(0), c.index(1)};
  if (c.place().layer > 0)
    return explain_same(c, block_output(c.config(), stack, c.place().layer - 1), index);
  if (c.config().embedding_norm != NormKind::none)
    return explain_same(c, {norm_point(NormSite::embed_ln, NormStage::out), -1, stack}, index);
  add_embeddings(c);
  c.set_formula("embed (+ pos_embed, + type_embed where the family adds them here)");
  c.finish_sum("sum");
}

void explain_attn_out(Calculation& c) {
  const bool normed = c.plan().attn_norm.on_output != NormKind::none;
  explain_same(c, normed ? norm_point(NormSite::ln1_post, NormStage::out) : Point::attn_out_proj);
}

void explain_resid_mid(Calculation& c) { explain_addition(c, block_input(c.place()), Point::attn_out); }

void explain_normalized(Calculation& c) {
  const Point point = c.place().point;
  const NormSite site = point == Point::normalized_resid_mid     ? NormSite::ln1
                        : point == Point::normalized_resid_cross ? NormSite::ln_cross
                                                                 : NormSite::ln2;
  explain_same(c, norm_point(site, NormStage::out));
}

void explain_cross_attn_out(Calculation& c) {
  explain_same(c, {Point::attn_out_proj, c.place().layer, Stack::cross}, {c.index(0), c.index(1)});
}

void explain_resid_cross(Calculation& c) {
  explain_addition(c, after_attention(c.config(), c.place()), Point::cross_attn_out);
}

void explain_mlp_out(Calculation& c) {
  const bool normed = c.plan().ffn_norm.on_output != NormKind::none;
  explain_same(c, normed ? norm_point(NormSite::ln2_post, NormStage::out) : Point::mlp_out_raw);
}

void explain_resid_post(Calculation& c) {
  explain_addition(c, after_cross_attention(c.config(), c.place()), Point::mlp_out);
}

void explain_logits(Calculation& c) {
  const Model& model = c.run().model;
  const bool tied = model.output_matrix.empty();
  c.linear({tied ? "embed" : "unembed", &model.output()}, c.index(1),
           c.input(output_input(c.config()), c.index(0)));
  c.set_formula(fmt::format("W_U · {}{}", output_input(c.config()).name(), tied ? " (W_U is W_E)" : ""));
  if (const double cap = c.config().final_soft_cap; cap > 0) {
    const double capped = cap * std::tanh(c.recomputed() / cap);
    c.step(fmt::format("soft cap: {0} · tanh(x / {0})", cap), capped);
    c.finish(capped, c.magnitude());
  }
}

void explain_pooler(Calculation& c) {
  const Linear& pooler = c.run().model.pooler;
  c.linear({"pooler", &pooler.weight, pooler.bias}, c.index(1), c.input(stream_end(c.config()), 0));
  const double value = std::tanh(c.recomputed());
  c.step("tanh", value);
  c.finish(value, c.magnitude());
}

}  // namespace liuli::numbers
