#include "core/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "liuli/error.h"

namespace liuli {
namespace {

// Keeps the caller busy until `n` threads have come. A thread that never comes would hang the test.
void wait_for(const std::atomic<int>& came, int n) {
  while (came.load() < n) std::this_thread::yield();
}

TEST(ThreadPool, RunsTheJobOnceOnEveryThreadThatComes) {
  for (int n : {1, 2, 3, 5}) {
    ThreadPool pool(n);
    std::vector<int> calls(static_cast<size_t>(n), 0);
    for (int round = 1; round <= 200; round++) {
      std::atomic<int> came{0};
      pool.run([&](int thread) {
        calls[static_cast<size_t>(thread)]++;
        came++;
        if (thread == 0) wait_for(came, n);
      });
      for (int c : calls) ASSERT_EQ(c, round);
    }
  }
}

TEST(ThreadPool, AJobEndsWithoutThreadsThatDidNotCome) {
  ThreadPool pool(5);
  std::vector<int> calls(5, 0);
  for (int round = 1; round <= 20000; round++) {
    pool.run([&](int thread) { calls[static_cast<size_t>(thread)]++; });
    ASSERT_EQ(calls[0], round);
  }
  for (int c : calls) EXPECT_LE(c, 20000);
}

TEST(ThreadPool, NobodyIsInsideWhenAJobReturns) {
  ThreadPool pool(4);
  for (int round = 0; round < 5000; round++) {
    auto inside =
        std::make_unique<std::atomic<int>>(0);  // freed at once: a straggler would be found by a sanitizer
    pool.run([&](int) {
      (*inside)++;
      (*inside)--;
    });
    ASSERT_EQ(*inside, 0);
  }
}

TEST(ThreadPool, TheCallerIsThreadZero) {
  ThreadPool pool(3);
  std::thread::id zero, one;
  std::atomic<int> came{0};
  pool.run([&](int thread) {
    if (thread == 0) zero = std::this_thread::get_id();
    if (thread == 1) one = std::this_thread::get_id();
    came++;
    if (thread == 0) wait_for(came, 3);
  });
  EXPECT_EQ(zero, std::this_thread::get_id());
  EXPECT_NE(one, zero);
}

TEST(ThreadPool, AcceptsAConstJob) {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  const auto job = [&](int) { calls++; };
  pool.run(job);
  EXPECT_GE(calls, 1);
}

TEST(Pieces, CoverTheRangeOnceAndShrinkToTheSmallest) {
  for (int64_t n : {0, 1, 7, 64, 1000})
    for (int64_t smallest : {1, 3, 100}) {
      Pieces pieces(n, 3, smallest);
      int64_t at = 0, last = n;
      for (int64_t begin, end; pieces.take(begin, end); at = end) {
        ASSERT_EQ(begin, at);
        ASSERT_GT(end, begin);
        ASSERT_TRUE(end == n || end - begin >= smallest);
        ASSERT_LE(end - begin, std::max(last, smallest));
        last = end - begin;
      }
      EXPECT_EQ(at, n);
    }
}

TEST(ThreadPool, ParallelForCoversTheRangeOnce) {
  for (int n_threads : {1, 2, 4}) {
    ThreadPool pool(n_threads);
    for (int64_t n : {0, 1, 2, 3, 7, 64, 1000})
      for (int64_t smallest : {0, 1, 50}) {
        std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
        pool.parallel_for(
            n,
            [&](int64_t begin, int64_t end, int thread) {
              EXPECT_LT(begin, end);
              EXPECT_LT(thread, n_threads);
              for (int64_t i = begin; i < end; i++) visits[static_cast<size_t>(i)]++;
            },
            smallest);
        for (const auto& v : visits) ASSERT_EQ(v, 1);
      }
  }
}

TEST(ThreadPool, WakesWorkersThatFellAsleep) {
  ThreadPool pool(3);
  for (int i = 0; i < 50; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // far beyond the spin
    std::atomic<int> came{0};
    pool.run([&](int thread) {
      came++;
      if (thread == 0) wait_for(came, 3);
    });
  }
}

TEST(ThreadPool, WakesACallerThatFellAsleep) {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  for (int i = 1; i <= 50; i++) {
    std::atomic<int> came{0};
    pool.run([&](int thread) {
      came++;
      if (thread == 0) wait_for(came, 2);
      if (thread == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      done++;
    });
    ASSERT_EQ(done, 2 * i);
  }
}

TEST(ThreadPool, SurvivesGapsAroundTheLengthOfTheSpin) {
  ThreadPool pool(2);
  int64_t sum = 0;
  for (int i = 0; i < 2000; i++) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(i % 41);
    while (std::chrono::steady_clock::now() < end) {
    }
    std::vector<int64_t> part(2, 0);
    pool.parallel_for(2, [&](int64_t begin, int64_t last, int) {
      for (int64_t at = begin; at < last; at++) part[static_cast<size_t>(at)] = i;
    });
    sum += part[0] + part[1];
  }
  EXPECT_EQ(sum, int64_t{2000} * 1999);
}

TEST(ThreadPool, StopsAwakeOrAsleepWithoutEverRunningAJob) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; i++) {
    ThreadPool pool(4);
    if (i % 2 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the workers sleep by now
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));  // a lost stop hangs
}

TEST(ThreadPool, RefusesANegativeNumberOfThreads) {
  try {
    ThreadPool pool(-2);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("-2"), std::string::npos);
  }
}

TEST(UsableCpus, FollowsTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(usable_cpus(), 1);
  EXPECT_LE(usable_cpus(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cpus(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace liuli
