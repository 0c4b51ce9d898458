// A progress bar that appears only where a person looks and only when there is something to wait for.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace liuli::cli {

enum class ProgressUnit { bytes, tokens, texts, patches };

/// One bar on stderr: `loading  [#####.....]  48 %  1.2 GiB/s  3 s left`. Shown when stderr is a terminal and
/// the work has lasted 0.3 s; redrawn ten times a second; gone without a trace at the end.
class Progress {
 public:
  Progress(std::string label, ProgressUnit unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(int64_t done, int64_t total);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(int64_t done, int64_t total, double seconds);

  std::string label_;
  ProgressUnit unit_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_, last_draw_;
};

}  // namespace liuli::cli
