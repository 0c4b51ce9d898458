// The article's worked example: every number of the reference through the general path.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "liuli/explain.h"
#include "trace/article_data.h"
#include "trace/explain_arithmetic.h"

namespace liuli {
namespace {

using nlohmann::json;
using Doubles = std::vector<double>;

const json& article() {
  static const json data = [] {
    std::ifstream file(LIULI_SOURCE_DIR "/tests/golden/article.json");
    return json::parse(file);
  }();
  return data;
}

const Explanation& part(const Explanation& e, std::string_view id) {
  for (const Explanation& p : e.parts) {
    if (p.id == id) return p;
  }
  throw std::runtime_error("no part " + std::string(id));
}

Doubles rounded(Doubles values, int decimals) {
  for (double& x : values) x = worked::round_decimals(x, decimals);
  return values;
}

void expect_relative(double got, double expected, double tolerance, const std::string& what) {
  EXPECT_LE(std::fabs(got - expected), tolerance * std::fabs(expected))
      << what << ": " << got << " " << expected;
}

void expect_all_relative(const Doubles& got, const Doubles& expected, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) expect_relative(got[i], expected[i], tolerance, what);
}

NormInputs article_inputs(double eps) {
  const json& ln = article()["layernorm"];
  NormInputs in;
  in.row = ln["row"].get<Doubles>();
  in.gamma = ln["gamma"].get<Doubles>();
  in.beta = ln["beta"].get<Doubles>();
  in.eps = eps;
  return in;
}

// One of article.json's blocks {mu, var, sigma, xhat, y}.
void expect_block(const Explanation& e, const json& block, double tolerance) {
  expect_relative(e.step("mean_var")->values[0], block["mu"], tolerance, "mu");
  expect_relative(e.step("mean_var")->values[1], block["var"], tolerance, "var");
  expect_relative(e.step("sigma")->values[0], block["sigma"], tolerance, "sigma");
  expect_all_relative(e.step("normalized")->values, block["xhat"].get<Doubles>(), tolerance, "xhat");
  expect_all_relative(e.step("out")->values, block["y"].get<Doubles>(), tolerance, "y");
}

void expect_rounded_block(const Explanation& e, const json& block, int decimals) {
  EXPECT_EQ(rounded(e.step("mean_var")->values, decimals), (Doubles{block["mu"], block["var"]}));
  EXPECT_EQ(rounded(e.step("sigma")->values, decimals), (Doubles{block["sigma"]}));
  EXPECT_EQ(rounded(e.step("normalized")->values, decimals), block["xhat"].get<Doubles>());
  EXPECT_EQ(rounded(e.step("out")->values, decimals), block["y"].get<Doubles>());
}

TEST(ExplainArticle, LayerNormOfUserNumbersAgreesWithTheReferenceTo1e15) {
  const json& ln = article()["layernorm"];
  expect_block(explain_norm(article_inputs(0), Language::en), ln["eps_0"], 1e-15);
  expect_block(explain_norm(article_inputs(1e-5), Language::zh), ln["eps_1e-5"], 1e-15);
}

TEST(ExplainArticle, RoundedToThreeDecimalsEveryPrintedNumberIsReproduced) {
  const json& ln = article()["layernorm"];
  for (double eps : {0.0, 1e-5}) {
    const Explanation e = explain_norm(article_inputs(eps), Language::en);
    expect_rounded_block(e, ln[eps == 0 ? "eps_0_rounded" : "eps_1e-5_rounded"], 3);
    expect_rounded_block(e, ln["article"], 3);
  }
}

TEST(ExplainArticle, PaperCalculationDiffersInTheSixNumbersThatTheReferenceLists) {
  NormInputs in = article_inputs(0);
  in.round_steps = 3;
  const Explanation e = explain_norm(in, Language::zh);
  expect_block(e, article()["layernorm"]["paper_calculation_3_decimals"], 0);

  const Explanation preset = explain_article(Language::zh);
  json found = json::array();
  for (const WorkedTable::Row& row : part(preset, "paper").table("article")->rows) {
    if (row.values[3] == 0) continue;
    // "x̂₁" and "y₀" of the table are "xhat[1]" and "y[0]" of the reference; the last byte of ₀…₉ counts up.
    const std::string item = row.label.front() == 'x' ? "xhat" : "y";
    found.push_back({{"item", item + "[" + std::to_string((row.label.back() & 0xff) - 0x80) + "]"},
                     {"article", row.values[2]},
                     {"recomputed_3_decimals", row.values[1]},
                     {"units_in_last_place", std::abs(int(row.values[3]))}});
  }
  EXPECT_EQ(found, article()["layernorm"]["differences_paper"]);
  EXPECT_EQ(found.size(), 6u);
}

TEST(ExplainArticle, PresetRunsTheSameNumbersThroughTheGeneralPath) {
  const Explanation preset = explain_article(Language::en);
  const json& ln = article()["layernorm"];
  expect_block(part(preset, "layer_norm"), ln["eps_0"], 1e-15);
  expect_block(part(preset, "layer_norm_eps"), ln["eps_1e-5"], 1e-15);
  expect_block(part(preset, "paper"), ln["paper_calculation_3_decimals"], 0);
  for (const char* id : {"layer_norm", "layer_norm_eps"}) {
    const WorkedTable& table = *part(preset, id).table("article");
    ASSERT_EQ(table.rows.size(), 11u);  // μ, σ², σ, four x̂, four y
    for (const WorkedTable::Row& row : table.rows) EXPECT_EQ(row.values[3], 0) << id << " " << row.label;
  }
  EXPECT_EQ(worked::kArticleRow, ln["row"].get<Doubles>());
  EXPECT_EQ(worked::kArticleMean, ln["article"]["mu"].get<double>());
  EXPECT_EQ(worked::kArticleVariance, ln["article"]["var"].get<double>());
  EXPECT_EQ(worked::kArticleSigma, ln["article"]["sigma"].get<double>());
  EXPECT_EQ(worked::kArticleNormalized, ln["article"]["xhat"].get<Doubles>());
  EXPECT_EQ(worked::kArticleOutputs,
            article()["matrix"]["output_rows_as_printed"].get<std::vector<Doubles>>());
}

TEST(ExplainArticle, ExplosionTakesOneTo114) {
  const json& reference = article()["explosion"];
  const Explanation e = explain_explosion({}, Language::en);
  EXPECT_EQ(e.step("iterate")->values, reference["values"].get<Doubles>());
  EXPECT_EQ(e.step("iterate")->values.back(), reference["recomputed"].get<double>());
  EXPECT_EQ(worked::round_decimals(e.step("iterate")->values.back(), 2),
            reference["article_result"].get<double>());
  EXPECT_EQ(worked::kArticleExplosion, reference["recomputed_2_decimals"].get<double>());
  EXPECT_DOUBLE_EQ(e.step("closed_form")->values[0], 2 * std::pow(1.5, 10) - 1);
  EXPECT_EQ(part(explain_article(Language::en), "explosion").step("iterate")->values,
            e.step("iterate")->values);
}

TEST(ExplainArticle, SixPrintedRowsGiveBackWhatTheReferenceRecovers) {
  const json& reference = article()["matrix"];
  RecoveryInputs in;
  in.rows = reference["output_rows_as_printed"].get<std::vector<Doubles>>();
  in.gamma = article()["layernorm"]["gamma"].get<Doubles>();
  in.beta = article()["layernorm"]["beta"].get<Doubles>();
  const Explanation e = explain_recovery(in, Language::zh);
  for (size_t r = 0; r < in.rows.size(); ++r) {
    EXPECT_EQ(rounded(e.step("normalized." + std::to_string(r))->values, 6),
              reference["recovered_xhat"][r].get<Doubles>());
    const WorkedTable::Row& row = e.table("rows")->rows[r];
    EXPECT_LE(std::fabs(row.values[0]), row.values[1]) << "the mean of row " << r;
    EXPECT_LE(std::fabs(row.values[2] - 1), row.values[3]) << "the variance of row " << r;
    EXPECT_LT(row.values[3], 0.002) << "a bound that would accept anything";
  }
  EXPECT_EQ(rounded(e.step("mean")->values, 6), reference["recovered_mean"].get<Doubles>());
  EXPECT_EQ(rounded(e.step("var")->values, 6), reference["recovered_variance"].get<Doubles>());
}

TEST(ExplainArticle, RecoveryNoticesARowThatNoNormCanHaveMade) {
  RecoveryInputs in{
      {{0.565, -1.356, 1.226, 0.208}, {0.565, -1.356, 1.226, 0.308}}, {1, 1, 1, 1}, {0, 0, 0, 0}, 3, {}};
  in.rows[0] = {1, -1, 1, -1};
  const Explanation e = explain_recovery(in, Language::en);
  EXPECT_EQ(e.table("rows")->rows[0].remark, "consistent");
  EXPECT_EQ(e.table("rows")->rows[1].remark, "not consistent");
}

TEST(ExplainArticle, DimensionTableHasTheArticlesScalingAndShift) {
  const Explanation e = explain_norm(article_inputs(0), Language::en);
  const WorkedTable& table = *e.table("dimensions");
  const json& reference = article()["per_dimension_row_2"];
  ASSERT_EQ(table.rows.size(), reference.size());
  for (size_t i = 0; i < reference.size(); ++i) {
    const Doubles& v = table.rows[i].values;  // x, x̂, γ, γ × x̂, β, y
    EXPECT_EQ(worked::round_decimals(v[1], 3), reference[i]["xhat"].get<double>());
    EXPECT_EQ(v[2], reference[i]["gamma"].get<double>());
    EXPECT_DOUBLE_EQ(v[3], v[1] * v[2]);
    EXPECT_EQ(v[4], reference[i]["beta"].get<double>());
    EXPECT_EQ(worked::round_decimals(v[5], 3), reference[i]["y"].get<double>());
  }
  EXPECT_EQ(table.rows[0].remark, "stretched, up");
  EXPECT_EQ(table.rows[1].remark, "shrunk, down");
  EXPECT_EQ(table.rows[2].remark, "kept, up");
}

}  // namespace
}  // namespace liuli
