#include "ops/gemm.h"

#include <algorithm>

namespace liuli {

float* gemm_scratch(OpContext& c, int64_t m, int64_t n, int64_t k) {
  return c.scratch.floats(static_cast<int64_t>(c.kernels.gemm.scratch_floats(m, n, k)));
}

// The longer side of C is cut, in multiples of a tile, so that the threads pack as little as possible twice.
void gemm(OpContext& c, const kernels::GemmArgs& g) {
  if (g.m == 0 || g.n == 0) return;
  constexpr int64_t kRowStep = 96, kColumnStep = 64;
  const bool by_rows = g.m >= g.n;
  const int64_t step = by_rows ? kRowStep : kColumnStep, total = by_rows ? g.m : g.n;
  const int64_t steps = (total + step - 1) / step, parts = std::min<int64_t>(c.pool.size(), steps);
  const Arena::Scope scope(c.scratch);
  const int64_t floats = round_up(static_cast<int64_t>(c.kernels.gemm.scratch_floats(g.m, g.n, g.k)), 16);
  float* scratch = c.scratch.floats(floats * parts);
  c.pool.run([&](int thread) {
    if (thread >= parts) return;
    const int64_t begin = steps * thread / parts * step,
                  end = std::min(total, steps * (thread + 1) / parts * step);
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
  });
}

}  // namespace liuli
