#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "model/load.h"

namespace liuli {
namespace {

int64_t counted_targets(const std::vector<Example>& batch) {
  int64_t n = 0;
  for (const Example& e : batch)
    n += std::count_if(e.target.begin(), e.target.end(), [](int t) { return t != kIgnoredTarget; });
  return n;
}

int64_t rows_of(const std::vector<Example>& batch) {
  int64_t n = 0;
  for (const Example& e : batch) n += static_cast<int64_t>(e.input.size());
  return n;
}

}  // namespace

Trainer::Trainer(const ModelConfig& config, Parameters& weights, Runner& runner,
                 const TrainerSettings& settings, BatchSource batches, Lora* lora)
    : weights_(weights),
      runner_(runner),
      settings_(settings),
      batches_(std::move(batches)),
      lora_(lora),
      model_(bind_trained_model(config, weights.source())),
      train_step_(model_, runner, settings.padding_id),
      optimizer_(trained(), settings.optimizer) {}

void Trainer::restored() {
  if (lora_ != nullptr) lora_->form_weights(runner_.pool);
}

CrossEntropy Trainer::gradients(const std::vector<std::vector<Example>>& parts, double counted) {
  weights_.clear_gradients();
  CrossEntropy total;
  for (size_t i = 0; i < parts.size(); i++) {
    // Every part drops other values.
    const auto pass = steps_made() * static_cast<int64_t>(parts.size()) + static_cast<int64_t>(i);
    train_step_.set_dropout({settings_.dropout, settings_.seed, pass});
    const CrossEntropy part = train_step_.run(parts[i], weights_.gradient_map(),
                                              {settings_.label_smoothing, counted}, settings_.keep);
    total.sum += part.sum;
    total.counted += part.counted;
  }
  if (lora_ != nullptr) lora_->form_gradients(runner_.pool);
  return total;
}

StepReport Trainer::step() {
  const auto start = std::chrono::steady_clock::now();
  StepReport report;
  report.step = steps_made();
  std::vector<std::vector<Example>> parts;
  int64_t counted = 0;
  for (int64_t i = 0; i < settings_.accumulate; i++) {
    parts.push_back(batches_(report.step, i));
    counted += counted_targets(parts.back());
    report.tokens += rows_of(parts.back());
  }
  const auto divisor = static_cast<double>(std::max<int64_t>(counted, 1));
  report.loss = gradients(parts, divisor).sum / divisor;
  report.gradient_norm = gradient_norm(runner_.pool, trained());
  report.learning_rate = settings_.schedule.rate(report.step);
  if (!std::isfinite(report.loss) || !std::isfinite(report.gradient_norm)) {
    report.non_finite = what_went_wrong(parts, divisor);
    return report;
  }
  const float clip = settings_.clip > 0 ? clip_factor(report.gradient_norm, settings_.clip) : 1.0f;
  optimizer_.step(runner_.pool, report.learning_rate, clip);
  if (lora_ != nullptr) lora_->form_weights(runner_.pool);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

std::optional<NonFinite> Trainer::what_went_wrong(const std::vector<std::vector<Example>>& parts,
                                                  double counted) {
  for (size_t i = 0; i < parts.size(); i++) {
    const auto pass = steps_made() * static_cast<int64_t>(parts.size()) + static_cast<int64_t>(i);
    train_step_.set_dropout({settings_.dropout, settings_.seed, pass});
    if (auto found = find_non_finite(train_step_, weights_, parts[i], {settings_.label_smoothing, counted},
                                     settings_.keep))
      return found;
  }
  return NonFinite{"the norm of all gradients together", -1, -1, -1, INFINITY};
}

double Trainer::evaluate(const std::vector<Example>& examples, int64_t batch) {
  CrossEntropy total;
  for (size_t at = 0; at < examples.size(); at += static_cast<size_t>(batch)) {
    const auto n = std::min(static_cast<size_t>(batch), examples.size() - at);
    const auto first = examples.begin() + static_cast<ptrdiff_t>(at);
    train_step_.forward({first, first + static_cast<ptrdiff_t>(n)}, Keep::nothing);
    const CrossEntropy part = train_step_.loss({});
    total.sum += part.sum;
    total.counted += part.counted;
  }
  return total.sum / static_cast<double>(std::max<int64_t>(total.counted, 1));
}

}  // namespace liuli
