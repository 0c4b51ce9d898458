#include "train/non_finite.h"

#include <cmath>

#include <fmt/format.h>

namespace liuli {
namespace {

// The first value of some rows that is no number.
std::optional<NonFinite> first_in(const std::string& name, Rows rows) {
  for (int64_t i = 0; i < rows.n; i++)
    for (int64_t j = 0; j < rows.width; j++)
      if (!std::isfinite(rows.row(i)[j]))
        return NonFinite{name, -1, i, j, static_cast<double>(rows.row(i)[j])};
  return std::nullopt;
}

// A row of the batch is a position of one of its examples.
void find_example(NonFinite& found, const std::vector<Example>& batch, bool encoder) {
  for (size_t i = 0; i < batch.size() && found.position >= 0; i++) {
    const auto n = static_cast<int64_t>(encoder ? batch[i].source.size() : batch[i].input.size());
    if (found.position < n) {
      found.example = static_cast<int64_t>(i);
      return;
    }
    found.position -= n;
  }
}

class Watcher final : public Probe {
 public:
  // Attention's scores are left out: −inf is how masked ones are written, and what is wrong with them shows in z.
  bool wants(const Place& place) const override {
    return !found && place.point != Point::attn_scores_raw && place.point != Point::attn_scores &&
           place.point != Point::attn_attn_scores && place.point != Point::attn_pattern;
  }
  bool sees_batches() const override { return true; }
  void see(const ProbedValue& value) override {
    if (found) return;
    found = first_in(value.place.name(), value.rows);
    if (found && value.row_tokens != nullptr) found->position = value.row_tokens[found->position];
    encoder = value.place.stack == Stack::encoder;
  }

  std::optional<NonFinite> found;
  bool encoder = false;
};

std::optional<NonFinite> in_parameters(const Parameters& weights, bool gradients) {
  for (const Parameter& p : weights.all()) {
    const float* values = gradients ? p.gradient : p.value;
    for (int64_t i = 0; i < p.size; i++)
      if (!std::isfinite(values[i]))
        return NonFinite{(gradients ? "the gradient of " : "the weight ") + p.name, -1, -1, i,
                         static_cast<double>(values[i])};
  }
  return std::nullopt;
}

std::optional<NonFinite> in_forward(TrainStep& step, const std::vector<Example>& batch, Keep keep) {
  Watcher watcher;
  step.watcher = &watcher;
  step.forward(batch, keep);
  step.watcher = nullptr;
  if (watcher.found) find_example(*watcher.found, batch, watcher.encoder);
  return watcher.found;
}

std::optional<NonFinite> in_backward(TrainStep& step, Parameters& weights, const std::vector<Example>& batch,
                                     const LossSettings& settings) {
  std::optional<NonFinite> found;
  GradientMap gradients = weights.gradient_map();
  Rows dx;
  const CrossEntropy loss = step.loss(settings, &gradients, &dx);
  if (!std::isfinite(loss.sum)) return NonFinite{"the loss", -1, -1, -1, loss.sum};
  const auto watch = std::move(step.on_gradient);
  step.on_gradient = [&](int layer, Rows d) {
    if (found) return;
    found = first_in(layer == 0 ? std::string("the gradient of blocks.0.resid_pre")
                                : fmt::format("the gradient of blocks.{}.resid_post", layer - 1),
                     d);
    if (found) find_example(*found, batch, false);
  };
  step.backward(dx, gradients);
  step.on_gradient = watch;
  return found;
}

}  // namespace

std::string NonFinite::text() const {
  std::string at = point;
  if (position >= 0) at += fmt::format(" at position {}", position);
  if (example >= 0) at += fmt::format(" of example {}", example);
  return index < 0 ? fmt::format("{} is {}", at, value) : fmt::format("{}, value {} is {}", at, index, value);
}

std::optional<NonFinite> find_non_finite(TrainStep& step, Parameters& weights,
                                         const std::vector<Example>& batch, const LossSettings& settings,
                                         Keep keep) {
  if (auto found = in_parameters(weights, false)) return found;
  if (auto found = in_forward(step, batch, keep)) return found;
  weights.clear_gradients();
  if (auto found = in_backward(step, weights, batch, settings)) return found;
  return in_parameters(weights, true);
}

}  // namespace liuli
