// What a forward pass leaves behind for the backward one: values under their points' names.
#pragma once
#include <unordered_map>

#include "core/arena.h"
#include "core/thread_pool.h"
#include "model/probe.h"

namespace liuli {

/// Listens to a training step and keeps the values whose gradients need them; everything else is formed again on the way
/// back (norms, attention patterns).
class Saved final : public Probe {
 public:
  /// Threads that copy what is kept; null: the caller alone.
  explicit Saved(ThreadPool* pool = nullptr) : pool_(pool) {}
  bool wants(const Place& place) const override;
  void see(const ProbedValue& value) override;
  bool sees_batches() const override { return true; }

  /// A kept value. REQUIRES: the step had it.
  Rows at(Point point, int layer, Stack stack = Stack::blocks, int expert = -1) const;
  bool has(Point point, int layer, Stack stack = Stack::blocks, int expert = -1) const;
  /// The rows of the step that one expert's values belong to.
  std::span<const int> expert_tokens(int layer, int expert, Stack stack = Stack::blocks) const;
  /// Forgets everything; the memory stays for the next step.
  void clear();
  size_t bytes() const { return arena_.capacity(); }

 private:
  struct Value {
    Rows rows;
    const int* tokens;
  };
  static uint64_t key(const Place& place);

  ThreadPool* pool_;
  Arena arena_;
  std::unordered_map<uint64_t, Value> values_;
};

}  // namespace liuli
