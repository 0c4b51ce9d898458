#include "train/lab/training.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "train/schedule.h"

namespace liuli::lab {
namespace {

// Sizes of the stream as it enters the first block and leaves each one.
class StreamWatcher final : public Probe {
 public:
  StreamWatcher(const StackShape& shape, LayerGradients& found) : found_(found) {
    const bool post = shape.placement == Placement::post || shape.placement == Placement::deepnorm;
    leaves_ = post ? Point::normalized_resid_post : Point::resid_post;
    found_.rms.assign(static_cast<size_t>(shape.depth) + 1, 0);
    found_.largest = found_.rms;
  }
  bool wants(const Place& place) const override {
    return place.point == leaves_ || (place.point == Point::resid_pre && place.layer == 0);
  }
  void see(const ProbedValue& value) override {
    const auto at = static_cast<size_t>(value.place.point == leaves_ ? value.place.layer + 1 : 0);
    found_.rms[at] = root_mean_square(value.rows);
    double largest = 0;
    for (int64_t i = 0; i < value.rows.n; i++)
      for (int64_t j = 0; j < value.rows.width; j++) {
        const double x = std::fabs(static_cast<double>(value.rows.row(i)[j]));
        largest = x <= largest ? largest : x;  // NaN stays
      }
    found_.largest[at] = largest;
  }
  bool sees_batches() const override { return true; }

 private:
  LayerGradients& found_;
  Point leaves_;
};

double mean_of(const CrossEntropy& loss) {
  return loss.sum / static_cast<double>(std::max<int64_t>(loss.counted, 1));
}

LayerGradients pass(RandomStack& stack, TrainStep& step, const std::vector<Example>& batch) {
  LayerGradients found;
  StreamWatcher watcher(stack.shape, found);
  step.watcher = &watcher;
  found.stream.assign(static_cast<size_t>(stack.shape.depth) + 1, 0);
  step.on_gradient = [&](int layer, Rows dx) { found.stream[static_cast<size_t>(layer)] = frobenius(dx); };
  found.loss = mean_of(step.run(batch, stack.parameters.gradient_map()));
  step.watcher = nullptr;
  step.on_gradient = nullptr;
  for (const Parameter& p : stack.parameters.all())
    if (p.spec.role == Role::ffn_down) found.w2.push_back(gradient_size(p));
  return found;
}

void clear_frozen(Parameters& parameters, const std::function<bool(const Parameter&)>& frozen) {
  if (!frozen) return;
  for (Parameter& p : parameters.all())
    if (frozen(p)) std::fill_n(p.gradient, p.size, 0.0f);
}

}  // namespace

LayerGradients measure_gradients(RandomStack& stack, Runner& runner, const std::vector<Example>& batch) {
  TrainStep step(stack.model, runner);
  stack.parameters.clear_gradients();
  return pass(stack, step, batch);
}

double mean_loss(const RandomStack& stack, Runner& runner, const std::vector<Example>& examples) {
  TrainStep step(stack.model, runner);
  step.forward(examples, Keep::nothing);
  return mean_of(step.loss({}));
}

TrainingRun train_stack(RandomStack& stack, Runner& runner, const Language28& language,
                        const TrainingSettings& settings) {
  TrainStep step(stack.model, runner);
  Optimizer optimizer(stack.parameters, {});
  Schedule schedule;
  schedule.kind = ScheduleKind::constant;
  schedule.peak = settings.learning_rate;
  schedule.warm_up = settings.warm_up;
  schedule.steps = settings.steps;
  TrainingRun run;
  for (int64_t it = 0; it < settings.steps && !run.diverged; it++) {
    stack.parameters.clear_gradients();
    const auto batch = language.batch(it, settings.batch, settings.length);
    const auto& measured = settings.measured_steps;
    if (std::find(measured.begin(), measured.end(), it) != measured.end()) {
      run.gradients.emplace_back(it, pass(stack, step, batch));
      run.losses.push_back(run.gradients.back().second.loss);
    } else {
      run.losses.push_back(mean_of(step.run(batch, stack.parameters.gradient_map())));
    }
    const double norm = gradient_norm(runner.pool, stack.parameters);
    run.diverged = !std::isfinite(norm) || !std::isfinite(run.losses.back());
    if (run.diverged) break;
    if (settings.clip > 0) clip_gradients(runner.pool, stack.parameters, norm, settings.clip);
    clear_frozen(stack.parameters, settings.frozen);
    optimizer.step(runner.pool, schedule.rate(it));
  }
  constexpr int64_t kHeldOut = 32;
  run.held_out = run.diverged ? std::numeric_limits<double>::quiet_NaN()
                              : mean_loss(stack, runner, language.held_out(kHeldOut, settings.length));
  return run;
}

}  // namespace liuli::lab
