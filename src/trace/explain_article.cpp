#include <algorithm>
#include <cmath>

#include "trace/article_data.h"
#include "trace/explain_writer.h"

namespace liuli {
namespace {

using namespace worked;

// One printed number of the article beside the computed one.
struct Comparison {
  std::string item;
  double computed, printed;
  double rounded() const { return round_decimals(computed, kArticleDecimals); }
  double units() const { return std::round((rounded() - printed) * std::pow(10.0, kArticleDecimals)); }
};

void compare_rows(std::vector<Comparison>& all, const char* name, const std::vector<double>& computed,
                  const std::vector<double>& printed) {
  for (size_t i = 0; i < printed.size(); ++i) all.push_back({subscript(name, i), computed[i], printed[i]});
}

std::vector<Comparison> compare(const Explanation& norm) {
  const WorkedStep &statistics = *norm.step("mean_var"), &sigma = *norm.step("sigma");
  std::vector<Comparison> all = {{"μ", statistics.values[0], kArticleMean},
                                 {"σ²", statistics.values[1], kArticleVariance},
                                 {"σ", sigma.values[0], kArticleSigma}};
  compare_rows(all, "x̂", norm.step("normalized")->values, kArticleNormalized);
  compare_rows(all, "y", norm.step("out")->values, kArticleOutputs[kArticleTokenRow]);
  return all;
}

WorkedTable comparison_table(const std::vector<Comparison>& all, const Writer& w) {
  WorkedTable t{"article",
                w.text(Text::table_article),
                w.text(Text::column_item),
                {w.text(Text::column_computed), w.text(Text::column_rounded, kArticleDecimals),
                 w.text(Text::column_printed), w.text(Text::column_units)},
                {"computed", "rounded", "printed", "units"},
                w.text(Text::column_result),
                {},
                std::max(w.digits(), 4)};
  for (const Comparison& c : all) {
    t.rows.push_back({c.item,
                      {c.computed, c.rounded(), c.printed, c.units()},
                      w.text(c.units() == 0 ? Text::article_same : Text::article_differs)});
  }
  return t;
}

// The norm of the article's row, compared with the printed numbers.
Explanation compared_norm(const char* id, const NormInputs& inputs, const Writer& w) {
  Explanation e = explain_norm(inputs, w.language(), w.digits());
  const std::vector<Comparison> all = compare(e);
  const auto differing =
      std::count_if(all.begin(), all.end(), [](const Comparison& c) { return c.units() != 0; });
  e.tables.push_back(comparison_table(all, w));
  e.notes.push_back(differing == 0 ? w.text(Text::note_article_equal, all.size(), kArticleDecimals)
                                   : w.text(Text::note_article_differs, differing, all.size()));
  e.id = id;
  return e;
}

NormInputs article_norm(std::string subject) {
  NormInputs in;
  in.row = kArticleRow;
  in.gamma = kArticleGamma;
  in.beta = kArticleBeta;
  in.subject = std::move(subject);
  return in;
}

Explanation explosion_part(const Writer& w) {
  Explanation e = explain_explosion({kArticleFactor, kArticleShift, kArticleStart, kArticleSteps},
                                    w.language(), w.digits());
  const double computed = e.step("iterate")->values.back();
  const double rounded = round_decimals(computed, kArticleExplosionDecimals);
  e.notes.push_back(
      w.text(rounded == kArticleExplosion ? Text::note_explosion_equal : Text::note_explosion_differs,
             kArticleExplosion, worked::number(computed, 17).text, kArticleExplosionDecimals));
  return e;
}

Explanation layer_norm_part(const Writer& w) {
  Explanation e = compared_norm("layer_norm", article_norm(kArticleToken), w);
  e.notes.push_back(w.text(Text::note_article_no_eps));
  return e;
}

Explanation layer_norm_eps_part(const Writer& w) {
  NormInputs in = article_norm(w.text(Text::article_with_eps, kArticleToken));
  in.eps = kUsualEps;
  return compared_norm("layer_norm_eps", in, w);
}

Explanation paper_part(const Writer& w) {
  NormInputs in = article_norm(w.text(Text::article_on_paper, kArticleToken));
  in.round_steps = kArticleDecimals;
  Explanation e = compared_norm("paper", in, w);
  e.notes.push_back(w.text(Text::note_article_paper));
  return e;
}

Explanation rows_part(const Writer& w) {
  RecoveryInputs in{kArticleOutputs, kArticleGamma, kArticleBeta, kArticleDecimals, {}};
  for (size_t r = 0; r < kArticleOutputs.size(); ++r) {
    in.labels.push_back(r == kArticleTokenRow ? fmt::format("{} {}", r + 1, kArticleToken)
                                              : std::to_string(r + 1));
  }
  Explanation e = explain_recovery(in, w.language(), w.digits());
  e.id = "rows";
  e.notes.push_back(w.text(Text::note_article_rows, kArticleOutputs.size() - 1));
  return e;
}

Explanation rms_norm_part(const Writer& w) {
  NormInputs in = article_norm(w.text(Text::article_by_rms, kArticleToken));
  in.kind = NormKind::rms;
  in.beta.clear();
  in.eps = kUsualEps;
  Explanation e = explain_norm(in, w.language(), w.digits());
  e.id = "rms_norm";
  e.notes.push_back(w.text(Text::note_article_models));
  return e;
}

}  // namespace

Explanation explain_article(Language language, int digits) {
  const Writer w(language, digits);
  Explanation e;
  e.id = "article";
  e.title = w.text(Text::article_title);
  e.parts = {explosion_part(w), layer_norm_part(w), layer_norm_eps_part(w),
             paper_part(w),     rows_part(w),       rms_norm_part(w)};
  return e;
}

}  // namespace liuli
