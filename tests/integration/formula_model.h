// Models of a thousand weights, each weight a function of its number: written as Hugging Face folders.
#pragma once
#include <fstream>

#include <nlohmann/json.hpp>

#include "formats/temporary_folder.h"
#include "golden_support.h"

namespace liuli::golden {

// Value k of tensor j, in [−1, 1).
inline double hashed(uint32_t j, uint32_t k) {
  uint32_t u = k * 2654435761u + j * 40503u + 12345u;
  u ^= u >> 15;
  u *= 2246822519u;
  u ^= u >> 13;
  return static_cast<double>(u) / 2147483648.0 - 1;
}

// e: embeddings, m: matrices, n: norms, g: Gemma's norms (γ − 1), b: biases.
inline double weight(char kind, double v) {
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

inline std::vector<float> tensor_values(const nlohmann::json& tensor, uint32_t number) {
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

inline void write_model(const nlohmann::json& description, const std::string& folder) {
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

/// A family's model in a folder of its own, and what is known of it.
struct FormulaModel {
  explicit FormulaModel(const std::string& family)
      : description(nlohmann::json::parse(std::ifstream(golden_path("formula/" + family + ".json")))),
        folder("formula-" + family) {
    write_model(description, folder.file(""));
  }
  std::string path() const { return folder.file(""); }
  std::vector<int> tokens() const { return description.at("tokens").get<std::vector<int>>(); }

  nlohmann::json description;
  TemporaryFolder folder;
};

}  // namespace liuli::golden
