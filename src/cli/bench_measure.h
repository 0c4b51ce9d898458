// The measurements behind `liuli bench`.
#pragma once
#include <string>
#include <vector>

#include "core/rng.h"
#include "liuli/engine.h"
#include "liuli/machine_limits.h"

namespace liuli::cli {

enum class BenchKind { prompt, generation };

/// One line of the benchmark: `tokens` per sequence, after `depth` tokens that are not timed, in `batch`
/// sequences.
struct BenchCase {
  BenchKind kind;
  int tokens, depth, batch;
};
const char* name_of(BenchKind kind);

/// What a case asks of the machine: bytes that have to be read, multiplications and additions.
struct CaseWork {
  double bytes = 0, ops = 0;
};
CaseWork work_of(const Engine& engine, const BenchCase& bench_case);

/// A case and its samples, ours and the peer's (empty: none, or no such test there).
struct BenchResult {
  BenchCase bench_case;
  CaseWork work;
  std::vector<double> seconds, rates, peer_rates;  ///< rates: tokens per second, all sequences together
};

/// Runs cases in fresh sessions with random token ids from a fixed seed.
class BenchRunner {
 public:
  explicit BenchRunner(Engine& engine) : engine_(engine) {}
  /// Seconds of one run; what comes before (the depth) is not timed. Errors: out_of_memory when depth + tokens pass the
  /// model's context; cancelled.
  double seconds(const BenchCase& bench_case);

 private:
  Engine& engine_;
  Rng rng_{42};
};

struct Spread {
  double median = 0, min = 0, max = 0;
};
Spread spread_of(std::vector<double> values);

/// The most memory this process ever held, in bytes.
int64_t peak_memory();

/// The share of the machine that other processes took between two moments.
class OtherLoad {
 public:
  OtherLoad();
  double share() const;  ///< of all CPUs' time since construction: 0 … 1

 private:
  struct Times {
    double busy = 0, all = 0, own = 0;  ///< seconds: all CPUs', and of this process with its children
  };
  static Times now();
  Times start_;
};

}  // namespace liuli::cli
