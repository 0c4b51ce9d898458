// What the golden tests share: where the files are, and how reference arrays are compared.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "formats/safetensors.h"
#include "liuli/engine.h"

namespace liuli::golden {

inline std::string golden_path(const std::string& name) {
  return std::string(LIULI_SOURCE_DIR) + "/tests/golden/" + name;
}

/// A real model's file; LIULI_MODELS names the folder (scripts/test.sh fetches them).
inline std::string real_model(const std::string& name) {
  const char* folder = std::getenv("LIULI_MODELS");
  return (folder != nullptr ? std::string(folder) : std::string("LIULI_MODELS-is-not-set")) + "/" + name +
         ".gguf";
}

inline std::vector<int> token_ids(const SafetensorsFile& file, const std::string& name) {
  const auto wide = file.integers(name);
  return {wide.begin(), wide.end()};
}

inline Engine load(const std::string& path, ProductClassChoice product_class, bool exact = false,
                   int threads = 2, CacheType cache_type = CacheType::automatic,
                   PromptProducts prompt_products = PromptProducts::bf16) {
  LoadSettings settings;
  settings.product_class = product_class;
  settings.exact = exact;
  settings.cache_type = cache_type;
  settings.prompt_products = prompt_products;
  settings.threads = threads;
  return Engine::load(path, settings);
}

/// All logits of a prompt, [n][vocab_size].
inline std::vector<std::vector<float>> all_logits(Engine& engine, const std::vector<int>& ids,
                                                  int chunk = 512) {
  std::vector<std::vector<float>> rows;
  engine.logits(
      ids, [&](int, std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); }, chunk);
  return rows;
}

/// Largest |a − b|; NaN anywhere counts as infinity.
inline double largest_difference(const std::vector<float>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); i++) {
    const double d = std::fabs(static_cast<double>(a[i]) - b[i]);
    worst = std::isnan(d) ? INFINITY : std::max(worst, d);
  }
  return worst;
}

/// A greedy continuation must equal the reference up to the first step whose gap between best and second is
/// too small to decide within the tolerance.
inline void expect_greedy(Engine& engine, const std::vector<int>& prompt, const std::vector<int>& expected,
                          const std::vector<double>& gaps, double smallest_gap) {
  Session session(engine);
  GenerateSettings settings;
  settings.max_tokens = static_cast<int>(expected.size());
  settings.ignore_eos = true;
  const GenerateResult result = session.generate(prompt, settings);
  for (size_t i = 0; i < expected.size() && gaps[i] >= smallest_gap; i++) {
    ASSERT_LT(i, result.tokens.size());
    ASSERT_EQ(result.tokens[i].id, expected[i]) << "step " << i << ", gap " << gaps[i];
  }
}

}  // namespace liuli::golden
