// Models of a thousand weights, each weight a function of its number, against logits, losses and hidden rows computed in
// double by plain loops over the formulas (checked with a second implementation).
#include "formula_model.h"

namespace liuli::golden {
namespace {

constexpr double kTolerance = 1e-5;  // six digits are printed; a float32 engine stays well inside

Engine load_formula(const FormulaModel& model, bool exact) {
  return load(model.path(), exact ? ProductClassChoice::automatic : ProductClassChoice::f32, exact);
}

void expect_rows(const std::vector<std::vector<float>>& rows, const FormulaModel& model) {
  for (const auto& [position, expected] : model.description.at("rows").items())
    EXPECT_LE(largest_difference(rows[std::stoul(position)], expected.get<std::vector<double>>()), kTolerance)
        << "position " << position;
}

// The mean over every position whose next token is known.
void expect_loss(const std::vector<std::vector<float>>& rows, const std::vector<int>& ids,
                 const FormulaModel& model) {
  double loss = 0;
  for (size_t t = 0; t + 1 < ids.size(); t++) {
    double sum = 0;
    for (const float logit : rows[t]) sum += std::exp(static_cast<double>(logit));
    loss += std::log(sum) - static_cast<double>(rows[t][static_cast<size_t>(ids[t + 1])]);
  }
  EXPECT_NEAR(loss / static_cast<double>(ids.size() - 1), model.description.at("loss").get<double>(),
              kTolerance);
}

class Formula : public testing::TestWithParam<const char*> {};

TEST_P(Formula, GivesThePrintedLogitsAndLoss) {
  const FormulaModel model(GetParam());
  for (const bool exact : {false, true}) {
    Engine engine = load_formula(model, exact);
    const auto rows = all_logits(engine, model.tokens());
    expect_rows(rows, model);
    expect_loss(rows, model.tokens(), model);
  }
}
INSTANTIATE_TEST_SUITE_P(Families, Formula,
                         testing::Values("llama", "qwen2", "qwen3", "gemma3", "olmo2", "gpt2", "deepseek_v3"),
                         [](const auto& family) { return std::string(family.param); });

TEST(FormulaOfDeepseek, ChoosesThePrintedExperts) {
  const FormulaModel model("deepseek_v3");
  Engine engine = load_formula(model, false);
  std::vector<float> printed;
  for (const auto& row : model.description.at("experts_of_layer_1"))
    for (const auto& id : row) printed.push_back(id.get<float>());
  EXPECT_EQ(engine.trace(model.tokens(), {"blocks.1.mlp.expert_ids"}).at(0).values, printed);
}

TEST(FormulaOfBert, GivesThePrintedRowsAndTheirMean) {
  const FormulaModel model("bert");
  for (const bool exact : {false, true}) {
    Engine engine = load_formula(model, exact);
    const TracedTensor last = engine.trace(model.tokens(), {"blocks.1.normalized_resid_post"}).at(0);
    const auto width = static_cast<size_t>(last.shape[1]);
    std::vector<std::vector<float>> rows;
    for (size_t at = 0; at < last.values.size(); at += width)
      rows.emplace_back(last.values.begin() + static_cast<ptrdiff_t>(at),
                        last.values.begin() + static_cast<ptrdiff_t>(at + width));
    expect_rows(rows, model);
    EmbedSettings settings;
    settings.pooling = Pooling::mean;
    settings.normalise = true;
    const std::vector<std::vector<int>> texts = {model.tokens()};
    EXPECT_LE(largest_difference(engine.embed_ids(texts, settings).at(0).values,
                                 model.description.at("sentence").get<std::vector<double>>()),
              kTolerance);
  }
}

TEST(FormulaOfTheEncoderDecoder, GivesThePrintedLogitsAndLoss) {
  const FormulaModel model("transformer2017");
  const std::vector<int> source = model.tokens(), target(source.begin(), source.begin() + 5);
  for (const bool exact : {false, true}) {
    Engine engine = load_formula(model, exact);
    std::vector<std::vector<float>> rows;
    engine.logits(target, [&](int, std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); },
                  512, {source});
    expect_rows(rows, model);
    expect_loss(rows, target, model);
  }
}

}  // namespace
}  // namespace liuli::golden
