#include <cmath>

#include "trace/explain_writer.h"

namespace liuli {
namespace {

using namespace worked;

constexpr std::string_view kPlace = "explain residual";
constexpr size_t kTableHead = 4, kTableTop = 4;  // of a long row: the first and those that changed most

void check(const ResidualInputs& in) {
  if (in.x.empty()) refuse(kPlace, fmt::format("{} has 0 numbers, but at least 1 is needed", in.x_name));
  require_same_length(kPlace, in.x_name, in.x.size(), in.added_name, in.added.size());
  require_finite(kPlace, in.x_name, in.x);
  require_finite(kPlace, in.added_name, in.added);
  if (!in.labels.empty()) require_same_length(kPlace, "labels", in.labels.size(), in.x_name, in.x.size());
  if (!in.observed.empty())
    require_same_length(kPlace, "observed", in.observed.size(), in.x_name, in.x.size());
}

struct Norms {
  double x, added, sum;
};

class ResidualExplainer {
 public:
  ResidualExplainer(const ResidualInputs& in, const Writer& w) : in_(in), w_(w) {
    for (size_t i = 0; i < in.x.size(); ++i) sum_.push_back(in.x[i] + in.added[i]);
    require_finite(kPlace, in.sum_name, sum_);
    norms_ = {l2_norm(in.x), l2_norm(in.added), l2_norm(sum_)};
    const double all[] = {norms_.x, norms_.added, norms_.sum};
    require_finite(kPlace, "norms", all);
  }

  Explanation explain() const {
    Explanation e;
    e.id = "residual";
    e.title =
        w_.text(Text::residual_title, in_.subject.empty() ? "" : w_.text(Text::subject_suffix, in_.subject));
    e.steps = {sum_step(), norms_step()};
    const bool has_cosine = norms_.x > 0 && norms_.added > 0;
    if (has_cosine) e.steps.push_back(cosine_step());
    e.tables = {dimension_table()};
    e.notes.push_back(w_.text(Text::note_residual, in_.x_name, in_.added_name));
    if (!has_cosine)
      e.notes.push_back(w_.text(Text::note_no_cosine, norms_.x > 0 ? in_.added_name : in_.x_name));
    if (norms_.x > 0) e.notes.push_back(w_.text(Text::note_ratio, w_.equals(norms_.added / norms_.x)));
    w_.note_observed(e, sum_, in_.observed);
    return e;
  }

 private:
  WorkedStep sum_step() const {
    return {"sum",
            w_.text(Text::step_residual_sum),
            fmt::format("{}ᵢ = {}ᵢ + {}ᵢ", in_.sum_name, in_.x_name, in_.added_name),
            w_.element_lines(in_.added,
                             [&](size_t i) {
                               return chain(subscript(in_.sum_name, i),
                                            {join({w_.number(in_.x[i]), " + ", w_.operand(in_.added[i])}),
                                             w_.number(sum_[i])});
                             }),
            {"sum"},
            sum_,
            true};
  }

  std::string norm_line(const std::string& name, std::span<const double> row, double norm) const {
    const Piece squares = w_.listed(row.size(), " + ", [&](size_t i) {
      return join({w_.operand(row[i]), "²"});
    });
    return chain("‖" + name + "‖",
                 {join({"√(", squares, ")"}), join({"√", w_.number(dot(row, row))}), w_.number(norm)});
  }

  WorkedStep norms_step() const {
    return {"norms",
            w_.text(Text::step_norms),
            "‖v‖ = √(v₀² + v₁² + …)",
            norm_line(in_.x_name, in_.x, norms_.x) + "\n" +
                norm_line(in_.added_name, in_.added, norms_.added) + "\n" +
                norm_line(in_.sum_name, sum_, norms_.sum),
            {"x", "added", "sum"},
            {norms_.x, norms_.added, norms_.sum}};
  }

  WorkedStep cosine_step() const {
    const double product = dot(in_.x, in_.added), cosine = product / norms_.x / norms_.added;
    const std::string formula = fmt::format("cos = {0}·{1} / (‖{0}‖ × ‖{1}‖)", in_.x_name, in_.added_name);
    const Piece quotient =
        join({w_.number(product), " / (", w_.number(norms_.x), " × ", w_.number(norms_.added), ")"});
    return {"cosine",   w_.text(Text::step_cosine),
            formula,    chain("cos", {quotient, w_.number(cosine)}),
            {"cosine"}, {cosine}};
  }

  WorkedTable dimension_table() const {
    WorkedTable t{"dimensions",
                  w_.text(Text::table_residual),
                  w_.text(Text::column_dimension),
                  {in_.x_name, in_.added_name, in_.sum_name},
                  {"x", "added", "sum"},
                  "",
                  {},
                  w_.digits()};
    add_rows(t, select(in_.added, kTableHead, kTableTop), [&](size_t i) {
      return WorkedTable::Row{
          in_.labels.empty() ? std::to_string(i) : in_.labels[i], {in_.x[i], in_.added[i], sum_[i]}, ""};
    });
    return t;
  }

  const ResidualInputs& in_;
  const Writer& w_;
  std::vector<double> sum_;
  Norms norms_{};
};

}  // namespace

Explanation explain_residual(const ResidualInputs& inputs, Language language, int digits) {
  const Writer writer(language, digits);
  check(inputs);
  return ResidualExplainer(inputs, writer).explain();
}

}  // namespace liuli
