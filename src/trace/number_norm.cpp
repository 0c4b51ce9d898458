#include <cmath>

#include <fmt/format.h>

#include "trace/number_explainers.h"
#include "trace/stream_places.h"

namespace liuli::numbers {
namespace {

struct NormHere {
  const Norm* norm;
  std::string name;  // of its weights
  Place input;
};

const Norm& either(const Norm& before, const Norm& after) {
  return before.kind != NormKind::none ? before : after;
}

const Norm& norm_of(Calculation& c, NormSite site) {
  const Model& model = c.run().model;
  switch (site) {
    case NormSite::embed_ln:
      return model.embedding_norm;
    case NormSite::ln_final:
      return model.final_norm;
    case NormSite::ln1:
      return either(c.block().attn_norm.before, c.block().attn_norm.after_add);
    case NormSite::ln1_post:
      return c.block().attn_norm.on_output;
    case NormSite::ln_cross:
      return either(c.block().cross_norm.before, c.block().cross_norm.after_add);
    case NormSite::ln2:
      return either(c.block().ffn_norm.before, c.block().ffn_norm.after_add);
    case NormSite::ln2_post:
      break;
  }
  return c.block().ffn_norm.on_output;
}

NormHere norm_here(Calculation& c, NormSite site) {
  const std::string& point = point_info(norm_point(site, NormStage::out)).name;  // "ln1.out"
  const std::string name = point.substr(0, point.rfind('.'));
  const bool in_block = c.place().layer >= 0;
  return {&norm_of(c, site), in_block ? block_prefix(c.place()) + name : name,
          norm_input(c.config(), c.place(), site)};
}

Place stage_place(Calculation& c, NormSite site, NormStage stage) {
  return c.beside(norm_point(site, stage));
}

// Σ x / n, or Σ (x − mean)² / n.
void explain_moment(Calculation& c, NormSite site, const NormHere& n, bool square) {
  const int64_t token = c.index(0);
  const auto row = c.run().rows.row(n.input, token);
  const auto width = static_cast<double>(row.size());
  const bool layer = n.norm->kind == NormKind::layer;
  if (!square && !layer) {
    c.set_kind("constant");
    return c.finish(0, 0);
  }
  const double mean = square && layer ? c.value(stage_place(c, site, NormStage::mean), {token, 0}) : 0;
  for (size_t j = 0; j < row.size(); j++) {
    const NumberOperand x = c.operand(n.input, {token, static_cast<int64_t>(j)});
    const double centered = x.value - mean;
    c.add_term({x}, (square ? centered * centered : x.value) / width);
  }
  c.set_formula(!square ? "Σ x / n" : layer ? "Σ (x − mean)² / n" : "Σ x² / n");
  c.set_kind(square ? "mean square" : "mean");
  // The kernel keeps sigma; the variance shown is sigma² − eps.
  c.finish(c.sum(), c.absolute_sum() + (square ? static_cast<double>(n.norm->eps) : 0));
}

void explain_sigma(Calculation& c, NormSite site, const NormHere& n) {
  const NumberOperand var = c.operand(stage_place(c, site, NormStage::var), {c.index(0), 0});
  const auto eps = static_cast<double>(n.norm->eps);
  c.add_term({var}, var.value);
  c.add_term({Calculation::named("eps", eps)}, eps);
  const double sigma = std::sqrt(c.sum());
  c.step("√", sigma);
  c.set_kind("root");
  c.finish(sigma, sigma);
}

void explain_centered(Calculation& c, NormSite site, const NormHere& n) {
  const NumberOperand x = c.operand(n.input, {c.index(0), c.index(1)});
  c.add_term({x}, x.value);
  const NumberOperand mean = c.operand(stage_place(c, site, NormStage::mean), {c.index(0), 0});
  c.add_term({Calculation::named("−1", -1), mean}, -mean.value);
  c.finish_sum("sum");
}

void explain_quotient(Calculation& c, NormSite site) {
  const NumberOperand x = c.operand(stage_place(c, site, NormStage::centered), {c.index(0), c.index(1)});
  const NumberOperand sigma = c.operand(stage_place(c, site, NormStage::sigma), {c.index(0), 0});
  c.add_term({x, sigma}, x.value / sigma.value);
  c.finish_sum("quotient");
}

double parameter(const float* values, int64_t j, double missing) {
  return values != nullptr ? static_cast<double>(values[j]) : missing;
}

void explain_scaled(Calculation& c, NormSite site, const NormHere& n) {
  const int64_t j = c.index(1);
  const NumberOperand x = c.operand(stage_place(c, site, NormStage::normalized), {c.index(0), j});
  const double gamma = parameter(n.norm->gamma, j, 1);
  c.add_term({x, Calculation::named(fmt::format("{}.weight[{}]", n.name, j), gamma)}, x.value * gamma);
  c.finish_sum("product");
}

void explain_out(Calculation& c, NormSite site, const NormHere& n) {
  const int64_t j = c.index(1);
  c.add_term(stage_place(c, site, NormStage::scaled), {c.index(0), j});
  if (n.norm->beta != nullptr) {
    const double beta = parameter(n.norm->beta, j, 0);
    c.add_term({Calculation::named(fmt::format("{}.bias[{}]", n.name, j), beta)}, beta);
  }
  c.finish_sum("sum");
}

}  // namespace

void explain_norm_stage(Calculation& c, NormSite site, NormStage stage) {
  const NormHere n = norm_here(c, site);
  switch (stage) {
    case NormStage::mean:
      return explain_moment(c, site, n, false);
    case NormStage::var:
      return explain_moment(c, site, n, true);
    case NormStage::sigma:
      return explain_sigma(c, site, n);
    case NormStage::centered:
      return explain_centered(c, site, n);
    case NormStage::normalized:
      return explain_quotient(c, site);
    case NormStage::scaled:
      return explain_scaled(c, site, n);
    case NormStage::out:
      return explain_out(c, site, n);
  }
}

}  // namespace liuli::numbers
