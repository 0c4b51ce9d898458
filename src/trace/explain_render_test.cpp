// What a reader sees: signs of rounding, aligned columns, line lengths, both languages, the machine form.
#include <gtest/gtest.h>
#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "liuli/error.h"
#include "trace/explain_texts.h"
#include "trace/explain_writer.h"

namespace liuli {
namespace {

using worked::number;

int columns_of(const std::string& line) {
  int width = 0;
  for (size_t at = 0; at < line.size();) {
    utf8proc_int32_t code = 0;
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(line.data() + at);
    at +=
        static_cast<size_t>(utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(line.size() - at), &code));
    width += utf8proc_charwidth(code);
  }
  return width;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

NormInputs long_norm(size_t n) {
  NormInputs in;
  in.kind = NormKind::rms;
  for (size_t i = 0; i < n; ++i) in.row.push_back(std::sin(double(i) * 1.7) * (i % 97 == 5 ? 30 : 1));
  in.eps = 1e-5;
  in.subject = "blocks.0.ln1，西安";
  return in;
}

TEST(ExplainNumbers, ExactOnesArePrintedWholeAndRoundedOnesAreMarked) {
  const auto expect = [](double x, int digits, const char* text, bool rounded) {
    EXPECT_EQ(number(x, digits).text, text);
    EXPECT_EQ(number(x, digits).rounded, rounded) << text;
  };
  expect(-0.37875, 6, "-0.37875", false);
  expect(-0.37875, 3, "-0.379", true);
  expect(0.1 + 0.2, 6, "0.3", false);
  expect(1.0 / 3, 4, "0.3333", true);
  expect(0.5430001, 3, "0.543", true);
  expect(1e-5, 6, "0.00001", false);
  expect(1e-5, 3, "1e-5", false);
  expect(1.23456789e-9, 3, "1.235e-9", true);
  expect(-0.0, 3, "0", false);
  expect(65504, 3, "65504", false);
  expect(std::ldexp(255.0, 120), 3, "3.390e38", true);
  expect(-std::numeric_limits<double>::infinity(), 3, "-∞", false);
  expect(0.0123456, 3, "0.012", true);
}

TEST(ExplainNumbers, EqualSignsStandOnlyBetweenExactNumbers) {
  EXPECT_EQ(worked::chain("a", {number(0.5, 3), number(1.0 / 3, 3), number(2, 3)}), "a = 0.5 ≈ 0.333 ≈ 2");
  EXPECT_EQ(worked::subscript("x̂", 10), "x̂₁₀");
}

TEST(ExplainNumbers, ColumnsShareTheirDecimals) {
  const std::vector<double> values = {1, 0.25, -12.5, std::nan("")};
  const worked::ColumnText column = worked::column(values, 6);
  EXPECT_EQ(column.cells, (std::vector<std::string>{"1.00", "0.25", "-12.50", ""}));
  EXPECT_FALSE(column.rounded);
}

TEST(ExplainTexts, EveryTextHasBothLanguagesWithTheSamePlaceholders) {
  const auto placeholders = [](const std::string& text) {
    std::multiset<std::string> found;
    for (size_t at = text.find('{'); at != std::string::npos; at = text.find('{', at + 1)) {
      found.insert(text.substr(at, text.find('}', at) - at));
    }
    return std::set<std::string>(found.begin(), found.end());
  };
  for (int i = 0; i < static_cast<int>(worked::Text::kCount); ++i) {
    const std::string zh = worked::text(static_cast<worked::Text>(i), Language::zh);
    const std::string en = worked::text(static_cast<worked::Text>(i), Language::en);
    EXPECT_FALSE(zh.empty()) << i;
    EXPECT_FALSE(en.empty()) << i;
    EXPECT_EQ(placeholders(zh), placeholders(en)) << zh << " / " << en;
  }
}

TEST(ExplainTexts, TheFirstLocaleVariableThatIsSetDecides) {
  EXPECT_EQ(language_from_locale(nullptr, nullptr, "zh_CN.UTF-8"), Language::zh);
  EXPECT_EQ(language_from_locale("", "", "zh_TW"), Language::zh);
  EXPECT_EQ(language_from_locale("en_US.UTF-8", "zh_CN", "zh_CN"), Language::en);
  EXPECT_EQ(language_from_locale("C", nullptr, "zh_CN"), Language::en);
  EXPECT_EQ(language_from_locale(nullptr, "zh", "en_US"), Language::zh);
  EXPECT_EQ(language_from_locale(nullptr, nullptr, nullptr), Language::en);
}

TEST(ExplainText, ALongRowStaysShortOnTheScreenAndCompleteInTheValues) {
  for (size_t n : {576u, 4096u}) {
    for (Language language : {Language::zh, Language::en}) {
      const Explanation e = explain_norm(long_norm(n), language);
      EXPECT_EQ(e.step("out")->values.size(), n);
      EXPECT_LE(lines_of(render_text(e)).size(), 60u);
      EXPECT_NE(render_text(e).find("…"), std::string::npos);
    }
  }
}

TEST(ExplainText, TheLargestTermOfALongRowIsShown) {
  NormInputs in = long_norm(576);
  in.row[400] = 99.5;
  const std::string text = render_text(explain_norm(in, Language::en));
  EXPECT_NE(text.find("x₄₀₀"), std::string::npos);
  EXPECT_NE(text.find("99.5"), std::string::npos);
}

TEST(ExplainText, ParagraphsKeepTheWidthInBothLanguages) {
  for (Language language : {Language::zh, Language::en}) {
    Explanation e = explain_norm(long_norm(576), language);
    e.tables.clear();
    for (int width : {40, 72, 100}) {
      for (const std::string& line : lines_of(render_text(e, {width, false})))
        EXPECT_LE(columns_of(line), width) << line;
    }
  }
}

TEST(ExplainText, TableColumnsAreAlignedAlsoUnderChineseHeadings) {
  Explanation e;
  e.title = "t";
  e.tables = {{"t",
               "表",
               "词元",
               {"分数", "x̂"},
               {"a", "b"},
               "说明",
               {{"西安", {1, -0.5}, "遮住"}, {"a", {10, 2}, "b"}},
               6}};
  const std::vector<std::string> lines = lines_of(render_text(e));
  const auto begins = [](const std::string& line, const char* word) {
    return columns_of(line.substr(0, line.find(word)));
  };
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(begins(lines[3], "说明"), begins(lines[4], "遮住"));
  EXPECT_EQ(begins(lines[4], "遮住"), begins(lines[5], "b"));
  EXPECT_EQ(begins(lines[4], "1 ") + 1, begins(lines[5], "0 ") + 1);
}

TEST(ExplainText, AColumnWithRoundedCellsIsHeadedByTheApproximateSign) {
  Explanation e;
  e.tables = {{"t", "t", "i", {"exact", "third"}, {"a", "b"}, "", {{"0", {0.5, 1.0 / 3}, ""}}, 3}};
  const std::string text = render_text(e);
  EXPECT_NE(text.find("≈ third"), std::string::npos);
  EXPECT_EQ(text.find("≈ exact"), std::string::npos);
}

TEST(ExplainText, ColoursAreOnlyThereWhenAskedFor) {
  const Explanation e = explain_article(Language::zh);
  EXPECT_EQ(render_text(e, {100, false}).find('\033'), std::string::npos);
  EXPECT_NE(render_text(e, {100, true}).find("\033[1m"), std::string::npos);
}

TEST(ExplainText, TheArticleIsDrawnAndHasNoUnicodeMinus) {
  for (Language language : {Language::zh, Language::en}) {
    const Explanation e = explain_article(language);
    const std::string text = render_text(e);
    EXPECT_EQ(text.find("−"), std::string::npos);
    EXPECT_NE(text.find("██"), std::string::npos);
    EXPECT_NE(text.find("114.330078125"), std::string::npos);
    EXPECT_NE(e.parts[0].svg.find("<polyline"), std::string::npos);
  }
}

TEST(ExplainPlot, BarsGrowWithTheValuesAndInfinityFillsTheLine) {
  const Explanation e = explain_explosion({10, 0, 1, 400}, Language::en);  // 1e400 is not a double
  EXPECT_TRUE(std::isinf(e.step("iterate")->values.back()));
  const std::vector<std::string> lines = lines_of(e.plot);
  EXPECT_LE(lines.size(), 25u);
  EXPECT_LT(std::count(lines[1].begin(), lines[1].end(), '\x96'),
            std::count(lines[5].begin(), lines[5].end(), '\x96'));
  EXPECT_EQ(std::count(lines.back().begin(), lines.back().end(), '\x96'), 50);
  EXPECT_EQ(e.svg.find("inf"), std::string::npos);
  EXPECT_EQ(e.svg.find("nan"), std::string::npos);
}

TEST(ExplainJson, CarriesEveryValueInFullPrecision) {
  const Explanation e = explain_article(Language::en);
  const nlohmann::json json = nlohmann::json::parse(render_json(e));
  ASSERT_EQ(json["parts"].size(), 6u);
  const nlohmann::json& norm = json["parts"][1];
  EXPECT_EQ(norm["id"], "layer_norm");
  EXPECT_EQ(norm["steps"][0]["values"]["mean"].get<double>(), e.parts[1].step("mean_var")->values[0]);
  EXPECT_EQ(norm["steps"][3]["values"]["out"].get<std::vector<double>>(), e.parts[1].step("out")->values);
  EXPECT_EQ(norm["tables"][0]["keys"][4], "beta");
}

TEST(ExplainJson, WritesMaskedScoresAndBytesThatAreNoText) {
  ScoreInputs in;
  in.q = {1};
  in.keys = {{1}, {2}};
  in.query_position = 0;
  in.labels = {"\xe8", "a"};
  const nlohmann::json json = nlohmann::json::parse(render_json(explain_scores(in, Language::en)));
  EXPECT_EQ(json["steps"][2]["values"]["attn_scores"][1], "-inf");
  EXPECT_EQ(json["steps"][6]["values"]["pattern"], (nlohmann::json{1.0, 0.0}));
  EXPECT_NE(render_text(explain_scores(in, Language::en)).find("-∞"), std::string::npos);
}

}  // namespace
}  // namespace liuli
