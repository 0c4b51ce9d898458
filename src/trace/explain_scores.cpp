#include <algorithm>
#include <cmath>

#include "trace/explain_writer.h"

namespace liuli {
namespace {

using namespace worked;

constexpr std::string_view kPlace = "explain scores";
constexpr size_t kProducts = 8;                  // printed products of one dot product
constexpr size_t kTableHead = 6, kTableTop = 6;  // of many keys: the first and the most attended

void check_mask(const ScoreInputs& in) {
  const auto n = static_cast<int64_t>(in.keys.size());
  if (in.window < 0) refuse(kPlace, fmt::format("the window is {}, but must be 0 (none) or more", in.window));
  if (!in.visible.empty()) require_same_length(kPlace, "visible", in.visible.size(), "keys", in.keys.size());
  if (in.window > 0 && !in.query_position && in.visible.empty()) {
    refuse(kPlace, fmt::format("a window of {} needs the query's position", in.window));
  }
  if (in.query_position && (*in.query_position < 0 || *in.query_position >= n)) {
    refuse(kPlace,
           fmt::format("the query is at position {}, but the keys are 0 … {}", *in.query_position, n - 1));
  }
  if (in.focus && (*in.focus < 0 || *in.focus >= n)) {
    refuse(kPlace, fmt::format("key {} is asked for, but the keys are 0 … {}", *in.focus, n - 1));
  }
}

void check(const ScoreInputs& in) {
  if (in.q.empty()) refuse(kPlace, "q has 0 numbers, but at least 1 is needed");
  if (in.keys.empty()) refuse(kPlace, "there are 0 keys, but at least 1 is needed");
  require_finite(kPlace, "q", in.q);
  for (size_t j = 0; j < in.keys.size(); ++j) {
    require_same_length(kPlace, fmt::format("key {}", j), in.keys[j].size(), "q", in.q.size());
    require_finite(kPlace, fmt::format("key {}", j), in.keys[j]);
  }
  if (in.scale) require_finite(kPlace, "scale", {&*in.scale, 1});
  if (!std::isfinite(in.soft_cap) || in.soft_cap < 0) {
    refuse(kPlace, fmt::format("the soft cap is {}, but must be 0 (none) or more", in.soft_cap));
  }
  if (!in.labels.empty()) require_same_length(kPlace, "labels", in.labels.size(), "keys", in.keys.size());
  if (!in.observed.empty())
    require_same_length(kPlace, "observed", in.observed.size(), "keys", in.keys.size());
  check_mask(in);
}

void check_scores(const ScoreValues& v) {
  require_finite(kPlace, "q·k", v.raw);
  require_finite(kPlace, "scores", v.scores);
  for (bool seen : v.visible) {
    if (seen) return;
  }
  refuse(kPlace,
         fmt::format("the mask hides all {} keys, and a softmax over 0 keys is undefined", v.visible.size()));
}

class ScoreExplainer {
 public:
  ScoreExplainer(const ScoreInputs& in, const ScoreValues& v, const Writer& w)
      : in_(in), v_(v), w_(w), n_(in.keys.size()) {
    focus_ = in.focus ? static_cast<size_t>(*in.focus) : largest(v.pattern, 1)[0];
    for (size_t i = 0; i < in.q.size(); ++i) products_.push_back(in.q[i] * in.keys[focus_][i]);
  }

  Explanation explain() const {
    Explanation e;
    e.id = "scores";
    e.title =
        w_.text(Text::scores_title, in_.subject.empty() ? "" : w_.text(Text::subject_suffix, in_.subject));
    e.steps = {raw_step(), scaled_step(), mask_step(), max_step(), exp_step(), sum_step(), pattern_step()};
    e.tables = {product_table(), key_table()};
    add_notes(e);
    return e;
  }

 private:
  std::string label(size_t key) const { return in_.labels.empty() ? std::to_string(key) : in_.labels[key]; }
  bool shows(size_t key) const { return v_.visible[key]; }

  // Only keys that take part: the first three and the three with the largest probability of many.
  template <class F>
  std::string key_lines(F&& line) const {
    return w_.element_lines(v_.pattern, line);
  }

  WorkedStep raw_step() const {
    const std::vector<size_t> order = largest(products_, std::min(kProducts, products_.size()));
    Piece terms("");
    for (size_t i : order) {
      if (!terms.text.empty()) terms = join({terms, " + "});
      terms = join({terms, w_.operand(in_.q[i]), " × ", w_.operand(in_.keys[focus_][i])});
    }
    if (order.size() < products_.size()) terms.text += " + …";
    return {"scores_raw",
            w_.text(Text::step_scores_raw),
            in_.q.size() > 1
                ? fmt::format("sⱼ = q·kⱼ = q₀ × kⱼ₀ + … + {} × {}", subscript("q", in_.q.size() - 1),
                              subscript("kⱼ", in_.q.size() - 1))
                : "sⱼ = q·kⱼ = q₀ × kⱼ₀",
            chain(subscript("s", focus_), {terms, w_.number(v_.raw[focus_])}),
            {"scores_raw"},
            v_.raw,
            true};
  }

  std::string scaled_line(size_t j) const {
    const Piece product = join({w_.operand(v_.raw[j]), " × ", w_.operand(v_.scale)});
    if (in_.soft_cap == 0) return chain(subscript("s", j), {product, w_.number(v_.scores[j])});
    const Piece cap = w_.number(in_.soft_cap);
    return chain(subscript("s", j),
                 {join({cap, " × tanh(", product, " / ", cap, ")"}), w_.number(v_.scores[j])});
  }

  WorkedStep scaled_step() const {
    const Piece scale = w_.number(v_.scale);
    std::string formula =
        in_.scale ? chain("scale", {scale}) : chain("scale", {fmt::format("1 / √{}", in_.q.size()), scale});
    formula =
        std::string(in_.soft_cap > 0 ? "sⱼ ← c × tanh(sⱼ × scale / c)" : "sⱼ ← sⱼ × scale") + ",  " + formula;
    if (in_.soft_cap > 0) formula += ",  " + chain("c", {w_.number(in_.soft_cap)});
    return {"scores",   w_.text(in_.soft_cap > 0 ? Text::step_scores_capped : Text::step_scores),
            formula,    key_lines([&](size_t j) { return scaled_line(j); }),
            {"scores"}, v_.scores,
            true};
  }

  WorkedStep mask_step() const {
    size_t hidden = 0;
    for (bool seen : v_.visible) hidden += !seen;
    std::string rule = w_.text(Text::mask_none);
    if (!in_.visible.empty()) {
      rule = w_.text(Text::mask_given);
    } else if (in_.query_position) {
      rule = in_.window > 0 ? w_.text(Text::mask_window, *in_.query_position, in_.window)
                            : w_.text(Text::mask_causal, *in_.query_position);
    }
    return {"attn_scores",
            w_.text(Text::step_mask),
            "sⱼ ← -∞   (" + rule + ")",
            w_.text(Text::mask_count, hidden, n_),
            {"attn_scores"},
            v_.masked,
            true};
  }

  WorkedStep max_step() const {
    const size_t at =
        static_cast<size_t>(std::max_element(v_.masked.begin(), v_.masked.end()) - v_.masked.begin());
    return {"max",        w_.text(Text::step_max),
            "M = max sⱼ", chain("M", {subscript("s", at), w_.number(v_.max)}),
            {"max"},      {v_.max}};
  }

  std::string exp_line(size_t j) const {
    if (!shows(j)) return chain(subscript("e", j), {"exp(-∞)", "0"});
    const Piece power = join({"exp(", w_.number(v_.masked[j]), " - ", w_.operand(v_.max), ")"});
    return chain(subscript("e", j), {power, w_.number(v_.exp[j])});
  }

  WorkedStep exp_step() const {
    return {"exp",
            w_.text(Text::step_exp),
            "eⱼ = exp(sⱼ - M)",
            key_lines([&](size_t j) { return exp_line(j); }),
            {"exp"},
            v_.exp,
            true};
  }

  WorkedStep sum_step() const {
    const Piece terms = w_.listed(n_, " + ", [&](size_t j) { return w_.number(v_.exp[j]); });
    return {"sum",   w_.text(Text::step_sum), "Z = Σ eⱼ", chain("Z", {terms, w_.number(v_.sum)}), {"sum"},
            {v_.sum}};
  }

  WorkedStep pattern_step() const {
    return {"pattern",
            w_.text(Text::step_pattern),
            "pⱼ = eⱼ / Z",
            key_lines([&](size_t j) {
              if (!shows(j)) return chain(subscript("p", j), {"0"});
              return chain(subscript("p", j), {join({w_.number(v_.exp[j]), " / ", w_.number(v_.sum)}),
                                               w_.number(v_.pattern[j])});
            }),
            {"pattern"},
            v_.pattern,
            true};
  }

  // The largest products first, with partial sums: how few dimensions decide a score.
  WorkedTable product_table() const {
    WorkedTable t{"products",
                  w_.text(Text::table_products, label(focus_)),
                  w_.text(Text::column_dimension),
                  {"q", "k", "q × k", w_.text(Text::column_partial_sum)},
                  {"q", "k", "product", "partial_sum"},
                  "",
                  {},
                  w_.digits()};
    Sum partial;
    for (size_t i : largest(products_, kProducts)) {
      partial.add(products_[i]);
      t.rows.push_back(
          {std::to_string(i), {in_.q[i], in_.keys[focus_][i], products_[i], partial.value()}, ""});
    }
    if (products_.size() > kProducts) {
      const double rest = v_.raw[focus_] - partial.value();
      t.rows.push_back({w_.text(Text::row_others, products_.size() - kProducts),
                        {std::nan(""), std::nan(""), rest, v_.raw[focus_]},
                        ""});
    }
    return t;
  }

  WorkedTable key_table() const {
    WorkedTable t{"keys",
                  w_.text(Text::table_keys),
                  w_.text(Text::column_key),
                  {"q·k", w_.text(Text::column_score), w_.text(Text::column_masked), "exp",
                   w_.text(Text::column_probability)},
                  {"scores_raw", "scores", "attn_scores", "exp", "pattern"},
                  w_.text(Text::column_mask),
                  {},
                  w_.digits()};
    add_rows(t, select(v_.pattern, kTableHead, kTableTop), [&](size_t j) {
      return WorkedTable::Row{label(j),
                              {v_.raw[j], v_.scores[j], v_.masked[j], v_.exp[j], v_.pattern[j]},
                              shows(j) ? "" : w_.text(Text::remark_masked)};
    });
    return t;
  }

  void add_notes(Explanation& e) const {
    const size_t best = largest(v_.pattern, 1)[0];
    e.notes.push_back(w_.text(Text::note_scores, label(best), w_.equals(v_.pattern[best])));
    e.notes.push_back(w_.text(Text::check_scores, w_.equals(sum_of(v_.pattern))));
    w_.note_observed(e, v_.pattern, in_.observed);
  }

  const ScoreInputs& in_;
  const ScoreValues& v_;
  const Writer& w_;
  size_t n_, focus_ = 0;
  std::vector<double> products_;
};

}  // namespace

Explanation explain_scores(const ScoreInputs& inputs, Language language, int digits) {
  const Writer writer(language, digits);
  check(inputs);
  const ScoreValues values = score_values(inputs);
  check_scores(values);
  return ScoreExplainer(inputs, values, writer).explain();
}

}  // namespace liuli
