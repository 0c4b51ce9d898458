#include <cmath>

#include "trace/explain_writer.h"

namespace liuli {
namespace {

using namespace worked;

constexpr std::string_view kPlace = "explain recovery";

void check(const RecoveryInputs& in) {
  if (in.rows.empty()) refuse(kPlace, "there are 0 rows, but at least 1 is needed");
  if (in.gamma.empty()) refuse(kPlace, "gamma has 0 numbers, but at least 1 is needed");
  require_same_length(kPlace, "beta", in.beta.size(), "gamma", in.gamma.size());
  require_finite(kPlace, "gamma", in.gamma);
  require_finite(kPlace, "beta", in.beta);
  for (size_t i = 0; i < in.gamma.size(); ++i) {
    if (in.gamma[i] == 0)
      refuse(kPlace, fmt::format("gamma[{}] is 0, and what it erased cannot be recovered", i));
  }
  for (size_t r = 0; r < in.rows.size(); ++r) {
    require_same_length(kPlace, fmt::format("row {}", r), in.rows[r].size(), "gamma", in.gamma.size());
    require_finite(kPlace, fmt::format("row {}", r), in.rows[r]);
  }
  if (in.decimals < 0 || in.decimals > 15) {
    refuse(kPlace, fmt::format("outputs with {} decimals, but 0 to 15 are possible", in.decimals));
  }
  if (!in.labels.empty()) require_same_length(kPlace, "labels", in.labels.size(), "rows", in.rows.size());
}

struct RecoveredRow {
  std::vector<double> normalized;
  Moments moments;
  double mean_bound = 0, var_bound = 0;  // how far rounding alone can move them
  bool consistent = false;
};

// With e the rounding error of x̂, |eᵢ| ≤ δᵢ = ½·10⁻ᵈᵉᶜⁱᵐᵃˡˢ / |γᵢ|:
//   |Δ mean| ≤ mean(δ)     |Δ var| = |2 cov(x̂, e) + var(e)| ≤ 2 mean(|x̂ − mean| δ) + mean(δ²)
RecoveredRow recover(const RecoveryInputs& in, const std::vector<double>& row) {
  RecoveredRow r;
  for (size_t i = 0; i < row.size(); ++i) r.normalized.push_back((row[i] - in.beta[i]) / in.gamma[i]);
  r.moments = moments(r.normalized);
  const double half_unit = 0.5 * std::pow(10.0, -in.decimals), n = static_cast<double>(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    const double delta = half_unit / std::fabs(in.gamma[i]);
    r.mean_bound += delta / n;
    r.var_bound += (2 * std::fabs(r.normalized[i] - r.moments.mean) * delta + delta * delta) / n;
  }
  r.consistent = std::fabs(r.moments.mean) <= r.mean_bound && std::fabs(r.moments.var - 1) <= r.var_bound;
  return r;
}

std::string row_label(const RecoveryInputs& in, size_t r) {
  return in.labels.empty() ? std::to_string(r) : in.labels[r];
}

WorkedStep row_step(const RecoveryInputs& in, size_t r, const RecoveredRow& recovered, const Writer& w) {
  const auto line = [&](size_t i) {
    const Piece quotient =
        join({"(", w.number(in.rows[r][i]), " - ", w.operand(in.beta[i]), ") / ", w.operand(in.gamma[i])});
    return chain(subscript("x̂", i), {quotient, w.number(recovered.normalized[i])});
  };
  return {fmt::format("normalized.{}", r),
          w.text(Text::step_recover, row_label(in, r)),
          "x̂ᵢ = (yᵢ - βᵢ) / γᵢ",
          w.element_lines(recovered.normalized, line),
          {"normalized"},
          recovered.normalized,
          true};
}

WorkedTable row_table(const RecoveryInputs& in, const std::vector<RecoveredRow>& rows, const Writer& w) {
  WorkedTable t{"rows",
                w.text(Text::table_recovery),
                w.text(Text::column_row),
                {w.text(Text::column_mean), w.text(Text::column_bound), w.text(Text::column_variance),
                 w.text(Text::column_bound)},
                {"mean", "mean_bound", "var", "var_bound"},
                w.text(Text::column_result),
                {},
                w.digits()};
  for (size_t r = 0; r < rows.size(); ++r) {
    const RecoveredRow& row = rows[r];
    t.rows.push_back({row_label(in, r),
                      {row.moments.mean, row.mean_bound, row.moments.var, row.var_bound},
                      w.text(row.consistent ? Text::recovery_consistent : Text::recovery_inconsistent)});
  }
  return t;
}

}  // namespace

Explanation explain_recovery(const RecoveryInputs& inputs, Language language, int digits) {
  const Writer w(language, digits);
  check(inputs);
  Explanation e;
  e.id = "recovery";
  e.title = w.text(Text::recovery_title, inputs.rows.size());
  std::vector<RecoveredRow> rows;
  WorkedStep means{"mean", w.text(Text::step_recovered_means), "μ(x̂) = (x̂₀ + x̂₁ + …) / d", "", {"mean"}, {},
                   true};
  WorkedStep variances{
      "var", w.text(Text::step_recovered_variances), "σ²(x̂) = ((x̂₀ - μ(x̂))² + …) / d", "", {"var"}, {}, true};
  for (size_t r = 0; r < inputs.rows.size(); ++r) {
    rows.push_back(recover(inputs, inputs.rows[r]));
    e.steps.push_back(row_step(inputs, r, rows[r], w));
    means.values.push_back(rows[r].moments.mean);
    variances.values.push_back(rows[r].moments.var);
  }
  means.numbers = chain("μ(x̂)", {w.vector(means.values)});
  variances.numbers = chain("σ²(x̂)", {w.vector(variances.values)});
  e.steps.push_back(means);
  e.steps.push_back(variances);
  e.tables = {row_table(inputs, rows, w)};
  e.notes = {w.text(Text::note_recovery), w.text(Text::note_recovery_bound, inputs.decimals)};
  return e;
}

}  // namespace liuli
