#include "core/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <vector>

#include "liuli/error.h"

namespace liuli {
namespace {

TEST(ThreadPool, RunsTheJobOnceOnEveryThread) {
  for (int n : {1, 2, 3, 5}) {
    ThreadPool pool(n);
    ASSERT_EQ(pool.size(), n);
    std::vector<int> calls(static_cast<size_t>(n), 0);
    for (int round = 1; round <= 200; round++) {
      pool.run([&](int thread) { calls[static_cast<size_t>(thread)]++; });
      for (int c : calls) ASSERT_EQ(c, round);
    }
  }
}

TEST(ThreadPool, TheCallerRunsShareZero) {
  ThreadPool pool(3);
  std::thread::id zero, one;
  pool.run([&](int thread) {
    if (thread == 0) zero = std::this_thread::get_id();
    if (thread == 1) one = std::this_thread::get_id();
  });
  EXPECT_EQ(zero, std::this_thread::get_id());
  EXPECT_NE(one, zero);
}

TEST(ThreadPool, AcceptsAConstJob) {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  const auto job = [&](int) { calls++; };
  pool.run(job);
  EXPECT_EQ(calls, 2);
}

TEST(ThreadPool, SharesOfParallelForCoverTheRangeOnceAndInOrder) {
  for (int n_threads : {1, 2, 4}) {
    ThreadPool pool(n_threads);
    for (int64_t n : {0, 1, 2, 3, 7, 64, 1000}) {
      std::vector<int> owner(static_cast<size_t>(n), -1);
      pool.parallel_for(n, [&](int64_t begin, int64_t end, int thread) {
        EXPECT_LT(begin, end);
        for (int64_t i = begin; i < end; i++) {
          EXPECT_EQ(owner[static_cast<size_t>(i)], -1);
          owner[static_cast<size_t>(i)] = thread;
        }
      });
      for (size_t i = 0; i < owner.size(); i++) {
        EXPECT_GE(owner[i], i == 0 ? 0 : owner[i - 1]);
      }
    }
  }
}

TEST(ThreadPool, WakesWorkersThatFellAsleep) {
  ThreadPool pool(3);
  std::atomic<int> calls{0};
  for (int i = 0; i < 50; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // far beyond the spin
    pool.run([&](int) { calls++; });
  }
  EXPECT_EQ(calls, 150);
}

TEST(ThreadPool, WakesACallerThatFellAsleep) {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  for (int i = 1; i <= 50; i++) {
    pool.run([&](int thread) {
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
    pool.run([&](int thread) { part[static_cast<size_t>(thread)] = i; });
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
