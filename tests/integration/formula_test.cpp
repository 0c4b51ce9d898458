// Models of a thousand weights, each weight a function of its number, against logits computed in double by plain loops
// over the formulas (checked with a second implementation). They reach the engine as Hugging Face folders.
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "formats/temporary_folder.h"
#include "golden_support.h"

namespace liuli::golden {
namespace {

constexpr double kTolerance = 1e-5;  // six digits are printed; a float32 engine stays well inside

// Value k of tensor j, in [−1, 1).
double hashed(uint32_t j, uint32_t k) {
  uint32_t u = k * 2654435761u + j * 40503u + 12345u;
  u ^= u >> 15;
  u *= 2246822519u;
  u ^= u >> 13;
  return static_cast<double>(u) / 2147483648.0 - 1;
}

// e: embeddings, m: matrices, n: norms, g: Gemma's norms (γ − 1), b: biases.
double weight(char kind, double v) {
  switch (kind) {
    case 'e':
      return v;
    case 'm':
      return 0.5 * v;
    case 'n':
      return 1 + 0.2 * v;
    case 'g':
      return 0.2 * v;
    default:
      return 0.1 * v;
  }
}

std::vector<float> tensor_values(const nlohmann::json& tensor, uint32_t number) {
  const auto shape = tensor.at("shape").get<std::vector<int64_t>>();
  const char kind = tensor.at("kind").get<std::string>()[0];
  const int64_t rows = shape[0], columns = shape.size() > 1 ? shape[1] : 1;
  const bool transposed = tensor.value("store_transposed", false);
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      values[static_cast<size_t>(transposed ? j * rows + i : i * columns + j)] =
          static_cast<float>(weight(kind, hashed(number, static_cast<uint32_t>(i * columns + j))));
  return values;
}

void write_model(const nlohmann::json& description, const std::string& folder) {
  std::ofstream(folder + "/config.json") << description.at("config");
  std::vector<SafetensorsSpec> specs;
  for (const auto& tensor : description.at("tensors")) {
    auto shape = tensor.at("shape").get<std::vector<int64_t>>();
    if (tensor.value("store_transposed", false)) std::swap(shape[0], shape[1]);
    specs.push_back({tensor.at("name"), DType::f32, shape});
  }
  SafetensorsWriter writer(folder + "/model.safetensors", specs);
  uint32_t number = 0;
  for (const auto& tensor : description.at("tensors")) {
    const std::vector<float> values = tensor_values(tensor, number++);
    writer.append(values.data(), values.size() * sizeof(float));
  }
  writer.finish();
}

class Formula : public testing::TestWithParam<const char*> {};

TEST_P(Formula, GivesThePrintedLogitsAndLoss) {
  const auto description =
      nlohmann::json::parse(std::ifstream(golden_path("formula/" + std::string(GetParam()) + ".json")));
  const TemporaryFolder folder(std::string("formula-") + GetParam());
  write_model(description, folder.file(""));
  const auto ids = description.at("tokens").get<std::vector<int>>();
  for (const bool exact : {false, true}) {
    SCOPED_TRACE(exact ? "exact" : "f32");
    Engine engine =
        load(folder.file(""), exact ? ProductClassChoice::automatic : ProductClassChoice::f32, exact);
    const auto rows = all_logits(engine, ids);
    for (const auto& [position, expected] : description.at("rows").items())
      EXPECT_LE(largest_difference(rows[std::stoul(position)], expected.get<std::vector<double>>()),
                kTolerance)
          << "position " << position;
    double loss = 0;
    for (size_t t = 0; t + 1 < ids.size(); t++) {
      double sum = 0;
      for (const float logit : rows[t]) sum += std::exp(static_cast<double>(logit));
      loss += std::log(sum) - static_cast<double>(rows[t][static_cast<size_t>(ids[t + 1])]);
    }
    EXPECT_NEAR(loss / static_cast<double>(ids.size() - 1), description.at("loss").get<double>(), kTolerance);
  }
}
INSTANTIATE_TEST_SUITE_P(Families, Formula,
                         testing::Values("llama", "qwen2", "qwen3", "gemma3", "olmo2", "gpt2", "deepseek_v3"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace liuli::golden
