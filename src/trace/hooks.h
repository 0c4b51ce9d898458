// Hooks as a listener.
#pragma once
#include <set>
#include <unordered_map>

#include "liuli/hook.h"
#include "model/probe.h"

namespace liuli {

/// Runs hooks at their points, and passes every value on to whoever listens behind them (who then sees what the hooks
/// left).
class HookProbe final : public Probe {
 public:
  /// Errors: not_found for a pattern that matches no point of the model.
  HookProbe(const ModelConfig& config, const std::vector<Hook>& hooks, Probe* next = nullptr);

  /// Who listens behind the hooks from now on.
  void listen_behind(Probe* next) { next_ = next; }

  bool wants(const Place& place) const override;
  void see(const ProbedValue& value) override;
  bool may_change(const Place& place) const override;
  /// Whether a hook is called there.
  bool hooks_at(const Place& place) const { return targets_.count(key(place)) != 0; }
  float* storage(const Place& place, int64_t n) override {
    return next_ != nullptr && next_->wants(place) ? next_->storage(place, n) : nullptr;
  }

  /// Errors: not_found: a hook's pattern matched a point, but no value passed it (a layer that was not run, an expert that
  /// was not chosen): an edit that did nothing.
  void require_all_fired() const;

 private:
  struct Target {
    std::string name;
    std::vector<size_t> hooks;
  };
  static uint64_t key(const Place& place);

  const ModelConfig& config_;
  const std::vector<Hook>& hooks_;
  Probe* next_;
  std::unordered_map<uint64_t, Target> targets_;
  std::set<size_t> fired_;
};

}  // namespace liuli
