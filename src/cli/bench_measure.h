// The measurements behind `liuli bench`.
#pragma once
#include <string>
#include <vector>

#include "liuli/engine.h"

namespace liuli::cli {

enum class BenchKind { prompt, generation };

/// One line of the benchmark: `tokens` per sequence, after `depth` tokens that are not timed, in `batch`
/// sequences.
struct BenchCase {
  BenchKind kind;
  int tokens, depth, batch;
};

/// Tokens per second of each repetition (all sequences together) and the seconds behind them.
struct BenchSamples {
  std::vector<double> rates, seconds;
};

/// One untimed run, then `repetitions` timed ones in fresh sessions with random token ids from a fixed seed.
/// Errors: out_of_memory when depth + tokens pass the model's context.
BenchSamples measure(Engine& engine, const BenchCase& bench_case, int repetitions);

struct Spread {
  double median = 0, min = 0, max = 0;
};
Spread spread_of(std::vector<double> values);

/// The most memory this process ever held, in bytes.
int64_t peak_memory();

}  // namespace liuli::cli
