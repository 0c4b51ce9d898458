#include "core/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "core/cpu_quota.h"
#include "liuli/error.h"

namespace liuli {
namespace {

// Long enough that the forks of one token follow each other without a system call, short enough that a thread
// whose CPU was taken away gives its time slice back: pure spinning then costs 25,000 times as much.
constexpr auto kSpinTime = std::chrono::microseconds(20);
constexpr int kOpen = 1 << 30;           // of ThreadPool::state_: the job takes more threads
constexpr int kPausesPerClockRead = 32;  // reading the clock costs about as much as one pause

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins until done() or kSpinTime has passed; says which.
template <class Done>
bool spin_until(Done done) {
  const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kPausesPerClockRead; i++) {
      if (done()) return true;
      pause_cpu();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return done();
}

/// Waits until done(), a condition on word. The sleeper counts itself before it looks again at word, the
/// waker changes word before it looks at the count, both sequentially consistent: one of them sees the other,
/// no wake-up is lost.
template <class Done>
void wait_until(Done done, const std::atomic<int>& word, std::atomic<int>& sleepers) {
  if (spin_until(done)) return;
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    const int value = word.load(std::memory_order_seq_cst);
    if (done()) break;
    word.wait(value, std::memory_order_seq_cst);
  }
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

/// Starts job generation + 1. The system call is paid only when somebody sleeps.
void publish(std::atomic<int>& generation, const std::atomic<int>& sleepers) {
  generation.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) != 0) generation.notify_all();
}

int affinity_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return static_cast<int>(std::thread::hardware_concurrency());
  return CPU_COUNT(&set);
}

}  // namespace

ThreadPool::ThreadPool(int n_threads) : n_threads_(n_threads == 0 ? usable_cpus() : n_threads) {
  if (n_threads < 0) {
    throw Error(ErrorCode::invalid_argument, "thread pool: " + std::to_string(n_threads) +
                                                 " threads asked for, at least 1 (or 0 for all) needed");
  }
  threads_.reserve(static_cast<size_t>(n_threads_ - 1));
  try {
    for (int i = 1; i < n_threads_; i++) threads_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error& error) {
    const size_t started = threads_.size() + 1;
    stop();
    throw Error(ErrorCode::out_of_memory, "thread pool: " + std::to_string(n_threads_) +
                                              " threads asked for, only " + std::to_string(started) +
                                              " could be started: " + error.what());
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stop_.store(true, std::memory_order_relaxed);  // published by the generation below
  publish(generation_, sleepers_);
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run_job(Job job, void* argument) {
  if (n_threads_ == 1) return job(argument, 0);
  job_ = job;
  argument_ = argument;
  state_.store(kOpen,
               std::memory_order_release);  // nobody is inside: enter() failed since the last job ended
  publish(generation_, sleepers_);
  job(argument, 0);
  state_.fetch_and(~kOpen, std::memory_order_seq_cst);
  wait_until([this] { return state_.load(std::memory_order_acquire) == 0; }, state_, caller_sleeps_);
}

bool ThreadPool::enter() {
  int state = state_.load(std::memory_order_relaxed);
  while ((state & kOpen) != 0)
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed))
      return true;
  return false;
}

void ThreadPool::leave() {
  if (state_.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
      caller_sleeps_.load(std::memory_order_seq_cst) != 0)
    state_.notify_one();
}

// A thread that comes late may find a later job open than the one that woke it, or none; while it is inside one, no
// other begins.
void ThreadPool::work(int thread) {
  for (int seen = 0;;) {
    wait_until([&] { return generation_.load(std::memory_order_acquire) != seen; }, generation_, sleepers_);
    seen = generation_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    if (!enter()) continue;
    seen = generation_.load(std::memory_order_relaxed);
    job_(argument_, thread);
    leave();
  }
}

int usable_cpus() {
  std::ifstream in("/proc/self/cgroup");
  const std::string self_cgroup{std::istreambuf_iterator<char>(in), {}};
  int cpus = affinity_cpus();
  if (const unsigned hardware = std::thread::hardware_concurrency(); hardware != 0)
    cpus = std::min(cpus, static_cast<int>(hardware));
  if (const auto quota = cgroup_cpu_quota("/sys/fs/cgroup", self_cgroup))
    cpus = static_cast<int>(std::min<double>(cpus, std::ceil(*quota)));
  return std::max(cpus, 1);
}

}  // namespace liuli
