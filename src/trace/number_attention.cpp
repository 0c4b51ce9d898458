#include "trace/number_attention.h"

#include <cmath>

#include <fmt/format.h>

#include "trace/number_explainers.h"
#include "trace/stream_places.h"

namespace liuli::numbers {

const Attention* plain_attention(Calculation& c) {
  if (c.place().stack == Stack::cross) return c.block().cross.get();
  return std::get_if<Attention>(&c.block().attention);
}

const LatentAttention* latent_attention(Calculation& c) {
  return c.place().stack == Stack::cross ? nullptr : std::get_if<LatentAttention>(&c.block().attention);
}

namespace {

StoredPair through_page(const kernels::AttentionKernels& kernels, const float* k, const float* v,
                        kernels::PageShape shape) {
  AlignedBuffer page(kernels.page_bytes(shape));
  kernels.append(page.data(), 0, k, v, shape);
  StoredPair stored{std::vector<float>(static_cast<size_t>(shape.head_dim)),
                    std::vector<float>(static_cast<size_t>(shape.value_dim))};
  kernels.read(page.data(), 0, stored.k.data(), stored.v.data(), shape);
  return stored;
}

}  // namespace

StoredPair as_stored(const kernels::AttentionKernels& kernels, std::span<const float> k,
                     std::span<const float> v) {
  return through_page(kernels, k.data(), v.data(), {static_cast<int>(k.size()), static_cast<int>(v.size())});
}

StoredPair as_stored_shared(const kernels::AttentionKernels& kernels, std::span<const float> k,
                            int64_t value_dim) {
  return through_page(kernels, k.data(), k.data(),
                      {static_cast<int>(k.size()), static_cast<int>(value_dim), true});
}

namespace {

NamedMatrix part(Calculation& c, const char* name, const Linear& linear) {
  const char* attention = c.place().stack == Stack::cross ? "cross_attn." : "attn.";
  return {block_prefix(c.place()) + attention + name, &linear.weight, linear.bias};
}

// What the projections multiply.
Place projected(Calculation& c) {
  const ModelConfig& config = c.config();
  if (c.place().stack != Stack::cross) return attention_input(config, c.place());
  if (c.place().point == Point::attn_q) return cross_input(config, c.place());
  return block_output(config, Stack::encoder, static_cast<int>(config.encoder_layers.size()) - 1);
}

void explain_plain_projection(Calculation& c, const Attention& a) {
  const Point point = c.place().point;
  const bool is_q = point == Point::attn_q, is_v = point == Point::attn_v;
  const int64_t row = c.index(1) * (is_v ? a.value_dim : a.head_dim) + c.index(2);
  const Place input = projected(c);
  const char* letter = is_q ? "q" : is_v ? "v" : "k";
  const Linear& linear = is_q ? a.q : is_v ? a.v : a.k;
  c.linear(part(c, letter, linear), row, c.input(input, c.index(0)));
  c.set_formula(fmt::format("W_{} · {}", letter, input.name()) +
                (linear.bias != nullptr ? fmt::format(" + b_{}", letter) : ""));
}

// c of one token as the cache keeps it: the beginning of a key, which may share the scale of its last codes with what
// follows.
ProductInput stored_latent(Calculation& c, const LatentAttention& a) {
  ProductInput latent = c.input(c.beside(Point::attn_kv_latent), c.index(0));
  std::vector<float> key = latent.values;
  const auto turned = c.run()
                          .rows.row(c.beside(Point::attn_rot_k), c.index(0))
                          .subspan(static_cast<size_t>(a.shape.qk_nope_head_dim),
                                   static_cast<size_t>(a.shape.qk_rope_head_dim));
  key.insert(key.end(), turned.begin(), turned.end());
  latent.values = as_stored_shared(c.run().ops.attention, key, a.shape.kv_lora_rank).v;
  return latent;
}

void explain_latent_projection(Calculation& c, const LatentAttention& a) {
  const int64_t head = c.index(1), d = c.index(2), nope = a.shape.qk_nope_head_dim;
  const int64_t width = nope + a.shape.qk_rope_head_dim;
  const Place stream = attention_input(c.config(), c.place());
  const std::string at = block_prefix(c.place()) + "attn.";
  if (c.place().point == Point::attn_q) {
    const bool direct = a.q_a.weight.empty();
    const Place input = direct ? stream : c.beside(Point::attn_q_latent);
    c.linear(part(c, "q_b", a.q_b), head * width + d, c.input(input, c.index(0)));
    return c.set_formula(fmt::format("W_q · {}", input.name()));
  }
  if (c.place().point == Point::attn_k && d >= nope) {
    c.linear(part(c, "kv_a", a.kv_a), a.shape.kv_lora_rank + d - nope, c.input(stream, c.index(0)));
    return c.set_formula(
        fmt::format("W_kva · {}: the part that all heads share, before RoPE", stream.name()));
  }
  const bool is_v = c.place().point == Point::attn_v;
  const auto& matrices = is_v ? a.v_up : a.k_up;
  c.linear({fmt::format("{}{}.{}", at, is_v ? "v_up" : "k_up", head), &matrices[static_cast<size_t>(head)]},
           d, stored_latent(c, a));
  c.set_formula(fmt::format("{} · {}, as the cache keeps it", is_v ? "V_up" : "K_up",
                            c.beside(Point::attn_kv_latent).name()));
}

}  // namespace

void explain_projection(Calculation& c) {
  if (const Attention* a = plain_attention(c)) return explain_plain_projection(c, *a);
  explain_latent_projection(c, *latent_attention(c));
}

void explain_normed_head(Calculation& c) {
  const Attention& a = *plain_attention(c);
  const bool is_q = c.place().point == Point::attn_q_normed, whole = a.qk_norm == QkNorm::whole;
  const Norm& norm = is_q ? a.q_norm : a.k_norm;
  const Place from = c.beside(is_q ? Point::attn_q : Point::attn_k);
  const ProductInput x = c.input(from, c.index(0));
  const int64_t head = c.index(1), d = c.index(2), own = head * a.head_dim;
  const int64_t first = whole ? 0 : own;
  const int64_t n = whole ? static_cast<int64_t>(x.values.size()) : a.head_dim;
  for (int64_t j = first; j < first + n; j++) {
    const NumberOperand operand = x.operand(j);
    c.add_term({operand}, operand.value * operand.value / static_cast<double>(n));
  }
  const auto eps = static_cast<double>(norm.eps);
  const double sigma = std::sqrt(c.sum() + eps);
  c.step(fmt::format("σ = √(Σ + eps), eps = {}", eps), sigma);
  const NumberOperand own_value = x.operand(own + d);
  const double normalised = own_value.value / sigma;
  c.step(fmt::format("{} / σ", own_value.name), normalised);
  const double gamma = norm.gamma != nullptr ? static_cast<double>(norm.gamma[whole ? own + d : d]) : 1.0;
  c.step(fmt::format("× {}attn.{}_norm.weight[{}] ({})", block_prefix(c.place()), is_q ? "q" : "k",
                     whole ? own + d : d, gamma),
         normalised * gamma);
  c.set_kind("norm");
  c.set_formula(fmt::format("{} / √(mean of squares over the {} + eps) · γ", from.name(),
                            whole ? "whole vector" : "head"));
  c.finish(normalised * gamma, std::fabs(normalised * gamma));
}

namespace {

// The RoPE of a layer; null where nothing turns.
struct LayerRope {
  const RopeConfig* config = nullptr;
  const std::vector<double>* frequencies = nullptr;
  int64_t half() const { return frequencies == nullptr ? 0 : static_cast<int64_t>(frequencies->size()); }
};
LayerRope rope_of(Calculation& c) {
  const Attention* plain = plain_attention(c);
  const auto rope = static_cast<size_t>(plain != nullptr ? plain->rope : latent_attention(c)->rope);
  const auto& all = c.run().model.rope_frequencies;
  if (rope >= all.size() || all[rope].empty()) return {};
  return {&c.config().ropes[rope], &all[rope]};
}

std::string frequency_text(const RopeConfig& rope, int64_t pair, double plain, double frequency) {
  std::string text = fmt::format("frequency {} = {}^(−2·{} / {})", pair, rope.theta, pair, rope.dim);
  if (frequency != plain) text += fmt::format(" = {}, scaled for long contexts", plain);
  return text;
}

}  // namespace

void explain_rope_angle(Calculation& c) {
  const LayerRope rope = rope_of(c);
  const int64_t token = c.index(0), pair = c.index(1);
  const double frequency = (*rope.frequencies)[static_cast<size_t>(pair)];
  const double plain = std::pow(rope.config->theta, -2.0 * static_cast<double>(pair) / rope.config->dim);
  const double angle = static_cast<double>(token) * frequency, factor = rope.config->attention_factor;
  c.add_term({Calculation::named("position", static_cast<double>(token)),
              Calculation::named(frequency_text(*rope.config, pair, plain, frequency), frequency)},
             angle);
  if (c.place().point == Point::attn_rope_angle) {
    c.set_formula("position · frequency, in radians");
    return c.finish_sum("product");
  }
  const bool is_cos = c.place().point == Point::attn_rope_cos;
  const double turned = is_cos ? std::cos(angle) : std::sin(angle);
  c.step(is_cos ? "cos" : "sin", turned);
  if (factor != 1) c.step(fmt::format("× attention factor {}", factor), turned * factor);
  c.set_kind("rotation");
  c.set_formula(fmt::format("{} of position · frequency{}", is_cos ? "cos" : "sin",
                            factor != 1 ? " · attention factor" : ""));
  c.finish(turned * factor, std::fabs(factor));
}

void explain_rotated(Calculation& c) {
  const bool is_q = c.place().point == Point::attn_rot_q;
  const Attention* plain = plain_attention(c);
  const LatentAttention* latent = latent_attention(c);
  const bool normed = plain != nullptr && plain->qk_norm != QkNorm::none;
  const Place from = c.beside(is_q ? (normed ? Point::attn_q_normed : Point::attn_q)
                                   : (normed ? Point::attn_k_normed : Point::attn_k));
  const LayerRope rope = rope_of(c);
  const int64_t half = rope.half(), first = latent != nullptr ? latent->shape.qk_nope_head_dim : 0;
  const int64_t token = c.index(0), head = c.index(1), at = c.index(2) - first;
  c.set_formula(from.name() + ": this number is not turned");
  if (at < 0 || at >= 2 * half) {
    c.add_term(from, {token, head, c.index(2)});
    return c.finish_sum("the same value");
  }
  const int64_t pair = at % half;
  const bool is_first = at < half;
  const NumberOperand a = c.operand(from, {token, head, first + pair});
  const NumberOperand b = c.operand(from, {token, head, first + pair + half});
  const NumberOperand cosine = c.operand(c.beside(Point::attn_rope_cos), {token, pair});
  const NumberOperand sine = c.operand(c.beside(Point::attn_rope_sin), {token, pair});
  const NumberOperand &kept = is_first ? a : b, &turned = is_first ? b : a;
  c.add_term({kept, cosine}, kept.value * cosine.value);
  if (is_first)
    c.add_term({Calculation::named("−1", -1), turned, sine}, -turned.value * sine.value);
  else
    c.add_term({turned, sine}, turned.value * sine.value);
  c.set_formula(fmt::format("pair ({}, {}) of {} turned by position {}", first + pair, first + pair + half,
                            from.name(), token));
  c.finish_sum("rotation");
}

void explain_latent(Calculation& c) {
  const LatentAttention& a = *latent_attention(c);
  const bool is_q = c.place().point == Point::attn_q_latent;
  const NamedMatrix m = is_q ? part(c, "q_a", a.q_a) : part(c, "kv_a", a.kv_a);
  const Norm& norm = is_q ? a.q_norm : a.kv_norm;
  const Place stream = attention_input(c.config(), c.place());
  const ProductInput x = c.input(stream, c.index(0));
  const int64_t rank = is_q ? a.shape.q_lora_rank : a.shape.kv_lora_rank, own = c.index(1);
  double squares = 0;
  for (int64_t row = 0; row < rank; row++) {
    const ProductOperands used = product_operands(c.run().ops, *m.weight, row, x.values);
    double y = m.bias != nullptr ? static_cast<double>(m.bias[row]) : 0;
    for (size_t i = 0; i < used.x.size(); i++) y += used.x[i] * used.w[i];
    squares += y * y;
  }
  c.linear(m, own, x);
  const double product = c.recomputed();
  const double sigma = std::sqrt(squares / static_cast<double>(rank) + static_cast<double>(norm.eps));
  c.step(fmt::format("/ σ, σ = √(mean of the squares of all {} products + eps) = {}", rank, sigma),
         product / sigma);
  const double gamma = norm.gamma != nullptr ? static_cast<double>(norm.gamma[own]) : 1.0;
  c.step(
      fmt::format("× {}attn.{}_norm.weight[{}] ({})", block_prefix(c.place()), is_q ? "q" : "kv", own, gamma),
      product / sigma * gamma);
  c.set_kind("normed dot product");
  c.set_formula(fmt::format("norm of W · {}", stream.name()));
  c.finish(product / sigma * gamma, c.magnitude() / sigma * std::fabs(gamma));
}

void explain_out_proj(Calculation& c) {
  const Attention* plain = plain_attention(c);
  const Linear& o = plain != nullptr ? plain->o : latent_attention(c)->o;
  c.linear(part(c, "o", o), c.index(1), c.input(c.beside(Point::attn_z), c.index(0)));
  c.set_formula(fmt::format("W_o · {}{}", c.beside(Point::attn_z).name(), o.bias != nullptr ? " + b_o" : ""));
}

}  // namespace liuli::numbers
