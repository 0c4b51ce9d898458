#include "cli/bench_measure.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include <sys/resource.h>

#include "cli/interrupt.h"
#include "core/rng.h"

namespace liuli::cli {
namespace {

constexpr uint64_t kSeed = 42;
constexpr int kShortPrompt = 8;  // what generation starts from when no depth is asked for

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Random ids: no text repeats, so nothing can be predicted or cached by luck.
std::vector<int> random_ids(const Engine& engine, int n, Rng& rng) {
  std::vector<int> ids(static_cast<size_t>(n));
  for (int& id : ids) id = static_cast<int>(rng.below(static_cast<uint64_t>(engine.vocab_size())));
  return ids;
}

int start_length(const BenchCase& c) {
  return c.kind == BenchKind::generation ? std::max(c.depth, kShortPrompt) : c.depth;
}

// Sessions that already hold their untimed tokens.
std::vector<Session> start_sessions(Engine& engine, const BenchCase& c, Rng& rng) {
  std::vector<Session> sessions;
  const int start = start_length(c);
  for (int i = 0; i < c.batch; ++i) {
    sessions.emplace_back(engine, start + c.tokens);
    if (start > 0) sessions.back().feed(random_ids(engine, start, rng));
  }
  return sessions;
}

double time_prompts(Engine& engine, const BenchCase& c, std::vector<Session>& sessions, Rng& rng) {
  const std::vector<int> ids = random_ids(engine, c.tokens, rng);
  const auto start = Clock::now();
  for (Session& session : sessions) session.feed(ids);
  return seconds_since(start);
}

double time_generation(Engine& engine, const BenchCase& c, std::vector<Session>& sessions, Rng& rng) {
  std::vector<Session*> together;
  for (Session& session : sessions) together.push_back(&session);
  const auto start = Clock::now();
  for (int step = 0; step < c.tokens; ++step) {
    throw_if_interrupted();
    const std::vector<int> ids = random_ids(engine, c.batch, rng);
    if (c.batch == 1) {
      sessions.front().feed(ids, true);
    } else {
      Session::feed_together(together, ids);
    }
  }
  return seconds_since(start);
}

double time_once(Engine& engine, const BenchCase& c, Rng& rng) {
  throw_if_interrupted();
  std::vector<Session> sessions = start_sessions(engine, c, rng);
  return c.kind == BenchKind::prompt ? time_prompts(engine, c, sessions, rng)
                                     : time_generation(engine, c, sessions, rng);
}

}  // namespace

BenchSamples measure(Engine& engine, const BenchCase& bench_case, int repetitions) {
  Rng rng(kSeed);
  time_once(engine, bench_case, rng);
  BenchSamples samples;
  for (int i = 0; i < repetitions; ++i) {
    const double seconds = time_once(engine, bench_case, rng);
    samples.seconds.push_back(seconds);
    samples.rates.push_back(static_cast<double>(bench_case.tokens) * bench_case.batch / seconds);
  }
  return samples;
}

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back()};
}

int64_t peak_memory() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;  // Linux counts KiB
}

}  // namespace liuli::cli
