// Real quantised models: the second opinion against a float64 run of the reference, the fast classes against
// the second opinion.
#include <nlohmann/json.hpp>

#include "golden_support.h"

namespace liuli::golden {
namespace {

constexpr double kLogits = 2e-3, kLastLogits = 5e-4, kGreedyGap = 4e-3;

double log_sum_exp(const std::vector<float>& row) {
  double max = -INFINITY, sum = 0;
  for (float v : row) max = std::max(max, static_cast<double>(v));
  for (float v : row) sum += std::exp(static_cast<double>(v) - max);
  return max + std::log(sum);
}

size_t argmax(const std::vector<float>& row) {
  return static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

using Logits = std::vector<std::vector<float>>;

void expect_top_logits(const SafetensorsFile& golden, const std::string& prompt, const Logits& rows) {
  const auto ids = golden.integers(prompt + ".top_ids");
  const auto top = golden.doubles(prompt + ".top_logits"), lse = golden.doubles(prompt + ".lse");
  const size_t k = ids.size() / rows.size();
  double worst = 0, worst_lse = 0;
  for (size_t i = 0; i < rows.size(); i++) {
    for (size_t j = 0; j < k; j++)
      worst = std::max(worst, std::fabs(static_cast<double>(rows[i][static_cast<size_t>(ids[i * k + j])]) -
                                        top[i * k + j]));
    worst_lse = std::max(worst_lse, std::fabs(log_sum_exp(rows[i]) - lse[i]));
  }
  EXPECT_LE(worst, kLogits) << prompt << " top logits";
  EXPECT_LE(worst_lse, kLogits) << prompt << " lse";
  std::printf("  exact %s: %zu positions, top-%zu logits within %.1e, lse within %.1e", prompt.c_str(),
              rows.size(), k, worst, worst_lse);
  if (golden.find(prompt + ".last_logits") != nullptr) {
    const double last = largest_difference(rows.back(), golden.doubles(prompt + ".last_logits"));
    EXPECT_LE(last, kLastLogits) << prompt << " last logits";
    std::printf(", last logits within %.1e", last);
  }
  std::printf("\n");
}

struct Agreement {
  double kl = 0, nll = 0, nll_exact = 0;
  int64_t n = 0, same_top = 0, predicted = 0;

  void add(const std::vector<int>& ids, const Logits& exact, const Logits& fast) {
    for (size_t i = 0; i < exact.size(); i++) {
      const double a = log_sum_exp(exact[i]), b = log_sum_exp(fast[i]);
      for (size_t v = 0; v < exact[i].size(); v++) {
        const double p = static_cast<double>(exact[i][v]) - a, q = static_cast<double>(fast[i][v]) - b;
        kl += std::exp(p) * (p - q);
      }
      n++;
      same_top += argmax(exact[i]) == argmax(fast[i]);
      if (i + 1 == ids.size()) continue;
      const auto next = static_cast<size_t>(ids[i + 1]);
      nll += b - static_cast<double>(fast[i][next]);
      nll_exact += a - static_cast<double>(exact[i][next]);
      predicted++;
    }
  }
  double mean_kl() const { return kl / static_cast<double>(n); }
  double agreement() const { return static_cast<double>(same_top) / static_cast<double>(n); }
  double perplexity_ratio() const { return std::exp((nll - nll_exact) / static_cast<double>(predicted)); }
};

class RealModel : public testing::TestWithParam<const char*> {};

TEST_P(RealModel, ExactMatchesTheReferenceAndTheFastClassesMatchExact) {
  const std::string name = GetParam();
  const SafetensorsFile golden(golden_path("real/" + name + ".safetensors"));
  Engine exact = load(real_model(name), ProductClassChoice::automatic, true);
  std::vector<std::vector<int>> prompts;
  std::vector<Logits> reference;
  for (int p = 0; golden.find("p" + std::to_string(p) + ".input_ids") != nullptr; p++) {
    const std::string prompt = "p" + std::to_string(p);
    const auto ids = token_ids(golden, prompt + ".input_ids");
    Logits rows = all_logits(exact, ids);
    expect_top_logits(golden, prompt, rows);
    expect_greedy(exact, ids, token_ids(golden, prompt + ".greedy"), golden.doubles(prompt + ".greedy_gap"),
                  kGreedyGap);
    if (p > 2) continue;
    prompts.push_back(ids);
    reference.push_back(std::move(rows));
  }
  ASSERT_EQ(prompts.size(), 3u);
  struct Bar {
    const char* name;
    ProductClassChoice product_class;
    double kl;
  };
  for (const Bar& bar :
       {Bar{"prompt", ProductClassChoice::prompt, 1e-3}, Bar{"decode", ProductClassChoice::decode, 3e-4}}) {
    Engine fast = load(real_model(name), bar.product_class);
    Agreement agreement;
    for (size_t p = 0; p < prompts.size(); p++)
      agreement.add(prompts[p], reference[p], all_logits(fast, prompts[p]));
    std::printf("  %s class: KL %.2e, top-1 agreement %.2f %%, perplexity ratio %.5f over %lld positions\n",
                bar.name, agreement.mean_kl(), 100 * agreement.agreement(), agreement.perplexity_ratio(),
                static_cast<long long>(agreement.n));
    EXPECT_LE(agreement.mean_kl(), bar.kl);
    EXPECT_GE(agreement.agreement(), 0.98);
    EXPECT_NEAR(agreement.perplexity_ratio(), 1, 0.002);
  }
}
INSTANTIATE_TEST_SUITE_P(Files, RealModel, testing::Values("smollm2", "qwen2.5", "gemma3"),
                         [](const auto& i) {
                           std::string name = i.param;
                           name.erase(std::remove(name.begin(), name.end(), '.'), name.end());
                           return name;
                         });

}  // namespace
}  // namespace liuli::golden
