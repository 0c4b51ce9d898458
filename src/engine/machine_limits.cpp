#include "liuli/machine_limits.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include <fmt/format.h>

#include "core/arena.h"
#include "kernels/peaks.h"
#include "liuli/error.h"

namespace liuli {
namespace {

constexpr int kWindows = 10;
constexpr size_t kBytesPerThread = size_t{256} << 20;  // far more than a cache holds
constexpr size_t kPiece = size_t{1} << 20;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Does some work and says how many units it was.
using Work = std::function<double(int thread)>;

// Every thread works for `seconds`; units per second of all together.
double rate_of_window(int threads, double seconds, const Work& work) {
  std::vector<double> rates(static_cast<size_t>(threads));
  std::barrier start(threads);
  const auto run = [&](int thread) {
    work(thread);  // wakes the core's vector units
    start.arrive_and_wait();
    const auto begin = Clock::now();
    double units = 0, taken = 0;
    do {
      units += work(thread);
      taken = seconds_since(begin);
    } while (taken < seconds);
    rates[static_cast<size_t>(thread)] = units / taken;
  };
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; thread++) others.emplace_back(run, thread);
  run(0);
  others.clear();  // waits for them
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

// A limit is what was reached at best: windows in which another process had a core say less.
double best_rate(int threads, double seconds, const Work& work) {
  double best = 0;
  for (int i = 0; i < kWindows; i++) best = std::max(best, rate_of_window(threads, seconds / kWindows, work));
  return best;
}

// A byte of every line: memory moves lines, and wider loads are no faster (Zen 4, one thread 30 GB/s, SSE2 words 26; two
// threads the same).
void read_piece(const uint8_t* memory) {
  for (size_t i = 0; i < kPiece; i += 64) (void)*static_cast<const volatile uint8_t*>(memory + i);
}

double measure_stream(int threads, double seconds) {
  std::vector<AlignedBuffer> buffers;
  for (int i = 0; i < threads; i++) {
    buffers.emplace_back(kBytesPerThread);
    std::memset(buffers.back().data(), 1, kBytesPerThread);  // untouched memory is one page of zeros
  }
  std::vector<size_t> at(static_cast<size_t>(threads));
  return best_rate(threads, seconds, [&](int thread) {
    const auto i = static_cast<size_t>(thread);
    constexpr int kPieces = 8;
    for (int piece = 0; piece < kPieces; piece++) {
      read_piece(buffers[i].data() + at[i]);
      at[i] = (at[i] + kPiece) % kBytesPerThread;
    }
    return static_cast<double>(kPieces * kPiece);
  });
}

double measure_peak(const kernels::PeakLoop& loop, int threads, double seconds) {
  constexpr int64_t kRounds = 20'000;  // below a millisecond
  return best_rate(threads, seconds, [&](int) {
    loop.run(kRounds);
    return static_cast<double>(kRounds) * loop.ops_per_round;
  });
}

bool is_integer(const ArithmeticPeak& peak) { return peak.name.starts_with("int8"); }

}  // namespace

double MachineLimits::highest(bool integer) const {
  double best = 0;
  for (const ArithmeticPeak& peak : peaks)
    if (is_integer(peak) == integer) best = std::max(best, peak.ops_per_second);
  return best;
}

MachineLimits measure_machine_limits(int threads, double seconds) {
  if (threads < 1 || !(seconds > 0))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("limits of {} threads in {} seconds: expected at least 1 thread and some time",
                            threads, seconds));
  MachineLimits limits;
  limits.threads = threads;
  limits.read_bytes_per_second = measure_stream(threads, seconds);
  const kernels::Isa in_use = kernels::best_kernels().isa;
  for (int level = 0; level <= static_cast<int>(in_use); level++) {
    const auto isa = static_cast<kernels::Isa>(level);
    const kernels::PeakTable table = kernels::peak_loops(isa);
    for (int i = 0; i < table.n; i++)
      limits.peaks.push_back({table.loops[i].name, kernels::kernels_for(isa)->name,
                              measure_peak(table.loops[i], threads, seconds)});
  }
  return limits;
}

}  // namespace liuli
