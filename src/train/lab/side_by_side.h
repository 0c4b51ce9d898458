// Independent runs on several threads, each on one: tiny models are too small to be cut among threads (a step of 6 blocks
// of width 32 on two busy CPUs takes 30 times as long as on one).
#pragma once
#include <cstddef>
#include <functional>

#include "train/lab/experiments.h"

namespace liuli::lab {

/// Calls run(i, runner) for i = 0 … n − 1, in any order, with a runner of one thread. The first exception stops the rest
/// and is thrown again.
void side_by_side(const Bench& bench, const std::string& what, size_t n,
                  const std::function<void(size_t, Runner&)>& run);

}  // namespace liuli::lab
