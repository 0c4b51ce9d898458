// A fork-join pool: one caller and n − 1 workers that spin briefly, then sleep.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace liuli {

/// Runs a job on every thread and waits. Waiting spins for about 20 µs (a fork-join then costs 0.3 µs), then
/// sleeps on a futex, so that a missing CPU costs microseconds and not time slices. One job at a time; not
/// reentrant.
class ThreadPool {
 public:
  /// n_threads ≥ 1, the caller included; 0 means usable_cpus(). Throws Error invalid_argument for a negative
  /// number, out_of_memory when the system gives fewer threads.
  explicit ThreadPool(int n_threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return n_threads_; }

  /// Calls f(thread) for thread = 0 … size() − 1; the caller runs 0. f must not throw.
  template <class F>
  void run(F&& f) {
    run_job([](void* job, int thread) { (*static_cast<std::remove_reference_t<F>*>(job))(thread); },
            const_cast<void*>(static_cast<const void*>(&f)));
  }

  /// Calls f(begin, end, thread) on one contiguous share of [0, n) per thread; empty shares are skipped.
  template <class F>
  void parallel_for(int64_t n, F&& f) {
    if (n_threads_ == 1 || n <= 1) {
      if (n > 0) f(int64_t{0}, n, 0);
      return;
    }
    run([&](int thread) {
      const int64_t begin = n * thread / n_threads_, end = n * (thread + 1) / n_threads_;
      if (begin < end) f(begin, end, thread);
    });
  }

 private:
  using Job = void (*)(void*, int);
  void run_job(Job job, void* argument);
  void work(int thread);
  void stop();

  int n_threads_;
  Job job_ = nullptr;
  void* argument_ = nullptr;
  alignas(64) std::atomic<int> generation_{0};
  alignas(64) std::atomic<int> left_{0};
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<int> caller_sleeps_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

/// CPUs this process may really use: the affinity mask, cut by a cgroup quota. At least 1.
int usable_cpus();

}  // namespace liuli
