#include "train/lab/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace liuli::lab {
namespace {

struct Shared {
  std::mutex mutex;
  std::atomic<size_t> next{0}, done{0};
  std::exception_ptr failure;
};

}  // namespace

void side_by_side(const Bench& bench, const std::string& what, size_t n,
                  const std::function<void(size_t, Runner&)>& run) {
  Shared shared;
  const auto work = [&] {
    try {
      Runner runner(1);
      for (size_t i = shared.next++; i < n; i = shared.next++) {
        run(i, runner);
        const std::lock_guard lock(shared.mutex);
        bench.progress(what, static_cast<double>(++shared.done) / static_cast<double>(n));
      }
    } catch (...) {
      const std::lock_guard lock(shared.mutex);
      if (shared.failure == nullptr) shared.failure = std::current_exception();
      shared.next = n;
    }
  };
  const size_t workers = std::min(n, static_cast<size_t>(std::max(1, bench.threads)));
  std::vector<std::thread> threads;
  for (size_t i = 1; i < workers; i++) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (shared.failure != nullptr) std::rethrow_exception(shared.failure);
}

}  // namespace liuli::lab
