// A fork-join pool: one caller and n − 1 workers that spin briefly, then sleep.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace liuli {

/// Pieces of [0, n) that threads take until none is left: large ones first, each a share of what is left, so that
/// they end together however fast each of them is.
class Pieces {
 public:
  /// No piece but the last is smaller than `smallest` ≥ 1.
  Pieces(int64_t n, int n_threads, int64_t smallest)
      : n_(n), shares_(2 * int64_t{n_threads}), smallest_(smallest) {}
  /// False when nothing is left.
  bool take(int64_t& begin, int64_t& end) {
    begin = next_.load(std::memory_order_relaxed);
    do {
      if (begin >= n_) return false;
      end = std::min(n_, begin + std::max(smallest_, (n_ - begin) / shares_));
    } while (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed));
    return true;
  }

 private:
  const int64_t n_, shares_, smallest_;
  std::atomic<int64_t> next_{0};
};

/// Fork and join for work that threads take piece by piece. The caller works too and waits only for threads that
/// came: one whose CPU is busy elsewhere holds up nobody, and a job that is over before it woke is over. Waiting spins
/// for about 20 µs (a fork-join then costs 0.3 µs), then sleeps on a futex, so that a missing CPU costs microseconds
/// and not time slices. One job at a time; not reentrant.
class ThreadPool {
 public:
  /// n_threads ≥ 1, the caller included; 0 means usable_cpus(). Throws Error invalid_argument for a negative
  /// number, out_of_memory when the system gives fewer threads.
  explicit ThreadPool(int n_threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return n_threads_; }

  /// Calls f(0) here and f(thread), thread < size(), on every other thread that comes before f(0) returns, once each:
  /// f takes pieces of a common list until it is empty. f must not throw.
  template <class F>
  void run(F&& f) {
    run_job([](void* job, int thread) { (*static_cast<std::remove_reference_t<F>*>(job))(thread); },
            const_cast<void*>(static_cast<const void*>(&f)));
  }

  /// Calls f(begin, end, thread) on pieces that cover [0, n) once; a thread may get several. `smallest`: items that
  /// are not worth parting; 0: an eighth of a thread's share.
  template <class F>
  void parallel_for(int64_t n, F&& f, int64_t smallest = 0) {
    if (smallest <= 0) smallest = std::max<int64_t>(1, n / (8 * int64_t{n_threads_}));
    if (n_threads_ == 1 || n <= smallest) {
      if (n > 0) f(int64_t{0}, n, 0);
      return;
    }
    Pieces pieces(n, n_threads_, smallest);
    run([&](int thread) {
      for (int64_t begin, end; pieces.take(begin, end);) f(begin, end, thread);
    });
  }

 private:
  using Job = void (*)(void*, int);
  void run_job(Job job, void* argument);
  bool enter();
  void leave();
  void work(int thread);
  void stop();

  int n_threads_;
  Job job_ = nullptr;
  void* argument_ = nullptr;
  alignas(64) std::atomic<int> generation_{0};  ///< counts jobs; what sleeping threads watch
  alignas(64) std::atomic<int> state_{0};       ///< threads inside the job, plus kOpen while more may come
  alignas(64) std::atomic<int> sleepers_{0};
  std::atomic<int> caller_sleeps_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

/// CPUs this process may really use: the affinity mask, cut by a cgroup quota. At least 1.
int usable_cpus();

}  // namespace liuli
