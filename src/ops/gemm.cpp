#include "ops/gemm.h"

#include <algorithm>

namespace liuli {

float* gemm_scratch(OpContext& c, int64_t m, int64_t n, int64_t k) {
  return c.scratch.floats(static_cast<int64_t>(c.kernels.gemm.scratch_floats(m, n, k)));
}

// The longer side of C is cut, in multiples of a tile. Every piece packs the other side again, so pieces are at least a
// quarter of a thread's share.
void gemm(OpContext& c, const kernels::GemmArgs& g) {
  if (g.m == 0 || g.n == 0) return;
  constexpr int64_t kRowStep = 96, kColumnStep = 64;
  const bool by_rows = g.m >= g.n;
  const int64_t step = by_rows ? kRowStep : kColumnStep, total = by_rows ? g.m : g.n;
  const int64_t steps = (total + step - 1) / step;
  const Arena::Scope scope(c.scratch);
  const int64_t floats = round_up(static_cast<int64_t>(c.kernels.gemm.scratch_floats(g.m, g.n, g.k)), 16);
  float* scratch = c.scratch.floats(floats * c.pool.size());
  const auto multiply = [&](int64_t first, int64_t last, int thread) {
    const int64_t begin = first * step, end = std::min(total, last * step);
    kernels::GemmArgs part = g;
    if (by_rows) {
      part.m = end - begin;
      part.a += begin * g.a_m;
      part.c += begin * g.c_row;
    } else {
      part.n = end - begin;
      part.b += begin * g.b_n;
      part.c += begin;
    }
    c.kernels.gemm.multiply(part, scratch + floats * thread);
  };
  c.pool.parallel_for(steps, multiply, std::max<int64_t>(1, steps / (4 * int64_t{c.pool.size()})));
}

}  // namespace liuli
