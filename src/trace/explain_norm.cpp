#include <cmath>
#include <functional>

#include "trace/explain_writer.h"

namespace liuli {
namespace {

using namespace worked;

constexpr size_t kTableHead = 4, kTableTop = 4;  // of a long row: the first and the largest outputs

// The steps of one norm, written down; the values were computed before.
class NormExplainer {
 public:
  NormExplainer(const NormInputs& in, const NormValues& v, const Writer& w)
      : in_(in), v_(v), w_(w), n_(in.row.size()), rms_(in.kind == NormKind::rms) {}

  Explanation explain() const {
    Explanation e;
    e.id = "norm";
    e.title = w_.text(title_text(), in_.subject.empty() ? "" : w_.text(Text::subject_suffix, in_.subject));
    e.steps = {rms_ ? mean_square_step() : mean_var_step(), sigma_step(), normalized_step(), out_step()};
    e.tables = {dimension_table()};
    add_notes(e);
    return e;
  }

 private:
  Text title_text() const {
    if (rms_) return Text::norm_title_rms;
    return in_.kind == NormKind::batch ? Text::norm_title_batch : Text::norm_title_layer;
  }

  std::string last(const char* name) const { return subscript(name, n_ - 1); }

  // "(x₀ + … + x₃) / 4"; a row of one or two elements has no "…".
  std::string sum_formula(const std::function<std::string(const std::string&)>& term) const {
    std::string sum = term("x₀");
    if (n_ > 2) sum += " + …";
    if (n_ > 1) sum += " + " + term(last("x"));
    return fmt::format("({}) / {}", sum, n_);
  }

  // The result, and the number kept of it when every step is rounded.
  void append_result(std::vector<Piece>& pieces, double raw, double kept) const {
    pieces.push_back(w_.number(raw));
    const std::string text = w_.number(kept).text;
    if (text != pieces.back().text) pieces.push_back({text, true});
  }

  std::string quotient_line(const char* lhs, const Piece& terms, double sum, double raw, double kept) const {
    const std::string by_n = fmt::format(" / {}", n_);
    std::vector<Piece> pieces = {join({"(", terms, ")", by_n}), join({w_.number(sum), by_n})};
    append_result(pieces, raw, kept);
    return chain(lhs, pieces);
  }

  std::string mean_line() const {
    const Piece terms = w_.listed(n_, " + ", [&](size_t i) { return w_.operand(in_.row[i]); });
    return quotient_line("μ", terms, v_.sum, v_.raw_mean, v_.mean);
  }

  std::string variance_line() const {
    const Piece terms = w_.listed(n_, " + ", [&](size_t i) {
      if (!rms_) return join({"(", w_.number(in_.row[i]), " - ", w_.operand(v_.mean), ")²"});
      return join({w_.operand(in_.row[i]), "²"});
    });
    return quotient_line(rms_ ? "m" : "σ²", terms, v_.square_sum, v_.raw_var, v_.var);
  }

  // Which elements make the variance: with hundreds of terms the sum alone explains little.
  std::string largest_squares_line() const {
    if (n_ <= kShortRow || v_.square_sum == 0) return "";
    std::string terms;
    for (size_t i : largest(deviations(), kTopTerms)) {
      const double square = deviations()[i] * deviations()[i];
      const Piece percent = worked::number(100 * square / v_.square_sum, 1);
      if (!terms.empty()) terms += ", ";
      terms += fmt::format("{}: {} ({}{} %)", subscript("x", i), w_.quoted(square),
                           percent.rounded ? "≈ " : "", percent.text);
    }
    return "\n" + w_.text(Text::largest_squares, terms);
  }

  std::vector<double> deviations() const {
    std::vector<double> d;
    for (double x : in_.row) d.push_back(x - v_.mean);
    return d;
  }

  WorkedStep mean_var_step() const {
    WorkedStep s{"mean_var",
                 w_.text(in_.kind == NormKind::batch ? Text::step_mean_var_batch : Text::step_mean_var),
                 "",
                 "",
                 {"mean", "var"},
                 {v_.mean, v_.var}};
    if (in_.mean) {
      s.formula = w_.text(Text::formula_stored_statistics);
      s.numbers = chain("μ", {w_.number(v_.mean)}) + "\n" + chain("σ²", {w_.number(v_.var)});
      return s;
    }
    s.formula = "μ = " + sum_formula([](const std::string& x) { return x; }) +
                "\nσ² = " + sum_formula([](const std::string& x) { return "(" + x + " - μ)²"; });
    s.numbers = mean_line() + "\n" + variance_line() + largest_squares_line();
    return s;
  }

  WorkedStep mean_square_step() const {
    return {"mean_square",
            w_.text(Text::step_mean_square),
            "m = " + sum_formula([](const std::string& x) { return x + "²"; }),
            variance_line() + largest_squares_line(),
            {"mean_square"},
            {v_.var}};
  }

  const char* sigma_name() const { return rms_ ? "rms" : "σ"; }

  WorkedStep sigma_step() const {
    std::vector<Piece> pieces = {join({"√(", w_.number(v_.var), " + ", w_.number(in_.eps), ")"})};
    append_result(pieces, v_.raw_sigma, v_.sigma);
    return {"sigma",
            w_.text(rms_ ? Text::step_rms : Text::step_sigma),
            rms_ ? "rms = √(m + ε)" : "σ = √(σ² + ε)",
            chain(sigma_name(), pieces),
            {"sigma"},
            {v_.sigma}};
  }

  std::string normalized_line(size_t i) const {
    const Piece x =
        rms_ ? w_.number(in_.row[i]) : join({"(", w_.number(in_.row[i]), " - ", w_.operand(v_.mean), ")"});
    std::vector<Piece> pieces = {join({x, " / ", w_.number(v_.sigma)})};
    append_result(pieces, v_.raw_normalized[i], v_.normalized[i]);
    return chain(subscript("x̂", i), pieces);
  }

  WorkedStep normalized_step() const {
    return {"normalized",
            w_.text(rms_ ? Text::step_normalize_rms : Text::step_normalize),
            rms_ ? "x̂ᵢ = xᵢ / rms" : "x̂ᵢ = (xᵢ - μ) / σ",
            w_.element_lines(v_.normalized, [&](size_t i) { return normalized_line(i); }),
            {"normalized"},
            v_.normalized,
            true};
  }

  std::string out_line(size_t i) const {
    Piece product = join({w_.number(gamma_at(in_, i)), " × ", w_.operand(v_.normalized[i])});
    if (!rms_) product = join({product, " + ", w_.operand(beta_at(in_, i))});
    std::vector<Piece> pieces = {product};
    append_result(pieces, v_.raw_out[i], v_.out[i]);
    return chain(subscript("y", i), pieces);
  }

  WorkedStep out_step() const {
    const bool one = in_.kind == NormKind::batch;  // one γ and one β for the whole column
    const char* formula = rms_ ? "yᵢ = γᵢ × x̂ᵢ" : one ? "yᵢ = γ × x̂ᵢ + β" : "yᵢ = γᵢ × x̂ᵢ + βᵢ";
    return {"out",   w_.text(rms_ ? Text::step_scale : Text::step_scale_shift),
            formula, w_.element_lines(v_.out, [&](size_t i) { return out_line(i); }),
            {"out"}, v_.out,
            true};
  }

  std::string effect(size_t i) const {
    const double gamma = gamma_at(in_, i), beta = beta_at(in_, i), size = std::fabs(gamma);
    std::string words = w_.text(size == 0  ? Text::effect_erased
                                : size > 1 ? Text::effect_stretched
                                : size < 1 ? Text::effect_shrunk
                                           : Text::effect_kept);
    if (gamma < 0) words += w_.text(Text::effect_flipped);
    if (rms_) return words;
    return words + w_.text(beta > 0   ? Text::effect_up
                           : beta < 0 ? Text::effect_down
                                      : Text::effect_unshifted);
  }

  WorkedTable::Row dimension_row(size_t i) const {
    const double gamma = gamma_at(in_, i), x_hat = v_.normalized[i];
    WorkedTable::Row row{
        in_.labels.empty() ? std::to_string(i) : in_.labels[i], {in_.row[i], x_hat, gamma}, effect(i)};
    if (!rms_) row.values.insert(row.values.end(), {gamma * x_hat, beta_at(in_, i)});
    row.values.push_back(v_.out[i]);
    return row;
  }

  WorkedTable dimension_table() const {
    const bool batch = in_.kind == NormKind::batch;
    WorkedTable t{"dimensions",
                  w_.text(rms_    ? Text::table_dimensions_rms
                          : batch ? Text::table_samples
                                  : Text::table_dimensions),
                  w_.text(batch ? Text::column_sample : Text::column_dimension),
                  {"x", "x̂", "γ", "γ × x̂", "β", "y"},
                  {"x", "normalized", "gamma", "scaled", "beta", "out"},
                  w_.text(Text::column_effect),
                  {},
                  w_.digits()};
    if (rms_) {
      t.columns = {"x", "x̂", "γ", "y"};
      t.keys = {"x", "normalized", "gamma", "out"};
    }
    add_rows(t, select(v_.out, kTableHead, kTableTop), [&](size_t i) { return dimension_row(i); });
    return t;
  }

  void add_notes(Explanation& e) const {
    const std::string who =
        in_.model.empty() ? w_.text(Text::uses_here) : w_.text(Text::uses_model, in_.model);
    const Moments row = moments(in_.row), hat = moments(v_.normalized);
    if (rms_) {
      e.notes.push_back(w_.text(Text::note_rms, who, n_, w_.equals(row.mean)));
      e.notes.push_back(w_.text(Text::check_rms, w_.equals(dot(v_.normalized, v_.normalized) / double(n_))));
    } else if (in_.kind == NormKind::layer) {
      e.notes.push_back(w_.text(Text::note_layer, who, n_, 2 * n_));
      e.notes.push_back(w_.text(Text::check_layer, w_.equals(hat.mean), w_.equals(hat.var)));
    } else {
      e.notes.push_back(w_.text(in_.mean ? Text::note_batch_stored : Text::note_batch, who, n_));
      if (in_.mean) e.notes.push_back(w_.text(Text::note_batch_gap, w_.equals(row.mean), w_.equals(row.var)));
    }
    if (in_.gamma.empty()) e.notes.push_back(w_.text(Text::note_no_gamma));
    if (in_.beta.empty() && !rms_) e.notes.push_back(w_.text(Text::note_no_beta));
    if (in_.round_steps) e.notes.push_back(w_.text(Text::note_rounded_steps, *in_.round_steps));
    w_.note_observed(e, v_.out, in_.observed);
  }

  const NormInputs& in_;
  const NormValues& v_;
  const Writer& w_;
  size_t n_;
  bool rms_;
};

Explanation explain_absent_norm(const NormInputs& in, const Writer& w) {
  Explanation e;
  e.id = "norm";
  e.title = w.text(Text::norm_title_none, in.subject.empty() ? "" : w.text(Text::subject_suffix, in.subject));
  e.steps = {{"out",
              w.text(Text::step_pass_through),
              "yᵢ = xᵢ",
              chain("y", {w.vector(in.row)}),
              {"out"},
              in.row,
              true}};
  e.notes = {w.text(Text::note_none)};
  w.note_observed(e, in.row, in.observed);
  return e;
}

}  // namespace

Explanation explain_norm(const NormInputs& inputs, Language language, int digits) {
  const Writer writer(language, digits);
  check_norm_inputs(inputs);
  if (inputs.kind == NormKind::none) return explain_absent_norm(inputs, writer);
  const NormValues values = norm_values(inputs);
  check_norm_values(inputs, values);
  return NormExplainer(inputs, values, writer).explain();
}

}  // namespace liuli
