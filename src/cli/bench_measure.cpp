#include "cli/bench_measure.h"

#include <algorithm>
#include <chrono>
#include <fstream>

#include <sys/resource.h>
#include <unistd.h>

#include "cli/interrupt.h"

namespace liuli::cli {
namespace {

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

// Weights once per chunk, keys and values once per chunk, the output matrix and most of the last block for
// the last token only.
CaseWork prompt_work(const Engine& engine, const BenchCase& c) {
  const int chunk = engine.plan().prompt_chunk;
  const int rows = std::min(c.tokens, chunk), passes = (c.tokens + chunk - 1) / chunk;
  const TokenWork w = token_work(engine, c.depth, c.tokens, rows);
  const double ops = w.product_ops + w.attention_ops + w.output_ops / c.tokens -
                     w.last_block_ops * (c.tokens - 1) / c.tokens;
  return {(passes * w.weight_bytes + w.cache_bytes / rows) * c.batch, ops * c.batch};
}

CaseWork generation_work(const Engine& engine, const BenchCase& c) {
  const TokenWork w = token_work(engine, start_length(c), c.tokens, c.batch);
  return {w.weight_bytes * c.tokens + w.cache_bytes * c.batch,
          (w.product_ops + w.attention_ops + w.output_ops) * c.batch};
}

}  // namespace

const char* name_of(BenchKind kind) { return kind == BenchKind::prompt ? "prompt" : "generation"; }

CaseWork work_of(const Engine& engine, const BenchCase& c) {
  return c.kind == BenchKind::prompt ? prompt_work(engine, c) : generation_work(engine, c);
}

double BenchRunner::seconds(const BenchCase& c) {
  throw_if_interrupted();
  std::vector<Session> sessions = start_sessions(engine_, c, rng_);
  return c.kind == BenchKind::prompt ? time_prompts(engine_, c, sessions, rng_)
                                     : time_generation(engine_, c, sessions, rng_);
}

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back()};
}

int64_t peak_memory() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;  // Linux counts KiB
}

OtherLoad::OtherLoad() : start_(now()) {}

// /proc/stat's first line: user nice system idle iowait irq softirq steal …, in ticks. A virtual machine's stolen time
// counts as somebody else's.
OtherLoad::Times OtherLoad::now() {
  std::ifstream file("/proc/stat");
  std::string name;
  double fields[8] = {};
  file >> name;
  for (double& field : fields) file >> field;
  Times times;
  for (const double field : fields) times.all += field;
  times.busy = times.all - fields[3] - fields[4];
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  times.all /= ticks, times.busy /= ticks;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage = {};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      times.own += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  return times;
}

double OtherLoad::share() const {
  const Times end = now();
  const double all = end.all - start_.all;
  const double others = (end.busy - start_.busy) - (end.own - start_.own);
  return all > 0 ? std::clamp(others / all, 0.0, 1.0) : 0;
}

}  // namespace liuli::cli
