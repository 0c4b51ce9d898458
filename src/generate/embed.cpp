#include "generate/embed.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "core/check.h"

namespace liuli {
namespace {

std::vector<float> mean_of(Rows rows) {
  std::vector<double> sum(static_cast<size_t>(rows.width));
  for (int64_t i = 0; i < rows.n; i++)
    for (size_t j = 0; j < sum.size(); j++) sum[j] += double{rows.row(i)[j]};
  std::vector<float> mean(sum.size());
  for (size_t j = 0; j < sum.size(); j++) mean[j] = static_cast<float>(sum[j] / static_cast<double>(rows.n));
  return mean;
}

std::vector<float> copy_of_row(Rows rows, int64_t i) { return {rows.row(i), rows.row(i) + rows.width}; }

std::vector<float> pooled(Rows rows, Pooling pooling) {
  switch (pooling) {
    case Pooling::mean:
      return mean_of(rows);
    case Pooling::cls:
      return copy_of_row(rows, 0);
    case Pooling::last:
      return copy_of_row(rows, rows.n - 1);
    case Pooling::unstated:
      break;
  }
  LIULI_CHECK(false);  // the caller chose
}

}  // namespace

std::vector<std::vector<float>> embed_texts(const Model& model, Runner& runner, ProductClass product_class,
                                            std::span<const std::vector<int>> texts, Pooling pooling) {
  const auto& kernels = attention_kernels(product_class, model.cache_form);
  std::deque<KvCache> caches;  // their addresses stay
  std::vector<SequenceInput> inputs;
  for (const std::vector<int>& text : texts)
    inputs.push_back({&caches.emplace_back(cache_shape(model.config), kernels), text});
  StepOptions options;
  options.product_class = product_class;
  options.every_logit = options.hidden = true;
  const Rows rows = transformer_forward(model, runner, inputs, options);
  std::vector<std::vector<float>> vectors;
  int64_t first = 0;
  for (const std::vector<int>& text : texts) {
    const auto n = static_cast<int64_t>(text.size());
    vectors.push_back(pooled(rows.slice(first, n), pooling));
    first += n;
  }
  return vectors;
}

void normalise_length(std::vector<float>& vector) {
  double squares = 0;
  for (const float v : vector) squares += double{v} * double{v};
  const double length = std::max(std::sqrt(squares), 1e-12);
  for (float& v : vector) v = static_cast<float>(double{v} / length);
}

}  // namespace liuli
