#include "ops/gemm.h"

#include <algorithm>

namespace liuli {
namespace {

// Columns of B that are packed at once: 4096 · 512 values are 8 MiB of f32. A is packed again for each such block of
// columns, 1 / 4096 of the work.
constexpr int64_t kColumnsAtOnce = 4096;

int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }

struct SharedProduct {
  const kernels::GemmKernel& kernel;
  const kernels::GemmArgs& args;  // k ≤ kGemmBlock
  float* packed;
  float* scratch;
  int64_t scratch_floats;  // of one thread

  void pack(ThreadPool& pool) const {
    pool.parallel_for(parts(args.n, kernel.tile_columns),
                      [&](int64_t begin, int64_t end, int) { kernel.pack(args, begin, end, packed); });
  }
  void rows(int64_t begin, int64_t end, int thread) const {
    kernels::GemmArgs part = args;
    begin *= kernel.tile_rows;
    part.m = std::min(args.m, end * kernel.tile_rows) - begin;
    part.a += begin * args.a_m;
    part.c += begin * args.c_row;
    kernel.multiply_packed(part, packed, scratch + scratch_floats * thread);
  }
  void columns(int64_t begin, int64_t end, int thread) const {
    kernels::GemmArgs part = args;
    begin *= kernel.tile_columns;
    part.n = std::min(args.n, end * kernel.tile_columns) - begin;
    part.c += begin;
    kernel.multiply_packed(part, packed + kernel.packed_floats(begin, args.k),
                           scratch + scratch_floats * thread);
  }
  // By rows, so that A is packed once; few rows by columns.
  void multiply(ThreadPool& pool) const {
    const int64_t tiles = parts(args.m, kernel.tile_rows), threads = pool.size();
    if (tiles < 2 * threads)
      pool.parallel_for(parts(args.n, kernel.tile_columns),
                        [&](int64_t begin, int64_t end, int thread) { columns(begin, end, thread); });
    else
      pool.parallel_for(tiles, [&](int64_t begin, int64_t end, int thread) { rows(begin, end, thread); });
  }
};

}  // namespace

const kernels::GemmKernel& gemm_kernel(const OpContext& c) {
  return c.bf16_products ? c.kernels.gemm_bf16 : c.kernels.gemm;
}

void gemm(OpContext& c, const kernels::GemmArgs& g) {
  if (g.m == 0 || g.n == 0) return;
  const kernels::GemmKernel& kernel = gemm_kernel(c);
  const int64_t at_once = round_up(kColumnsAtOnce, kernel.tile_columns),
                k = std::min(g.k, kernels::kGemmBlock);
  const Arena::Scope scope(c.scratch);
  float* packed = c.scratch.floats(static_cast<int64_t>(kernel.packed_floats(std::min(at_once, g.n), k)));
  const int64_t own = round_up(static_cast<int64_t>(kernel.scratch_floats(g.m, 0, k)), 16);
  float* scratch = c.scratch.floats(own * c.pool.size());
  for (int64_t column = 0; column < g.n; column += at_once)
    for (int64_t k0 = 0; k0 < g.k || k0 == 0; k0 += kernels::kGemmBlock) {
      kernels::GemmArgs part = g;
      part.n = std::min(at_once, g.n - column);
      part.k = std::min(kernels::kGemmBlock, g.k - k0);
      part.a += k0 * g.a_k;
      part.b += k0 * g.b_k + column * g.b_n;
      part.c += column;
      part.accumulate = g.accumulate || k0 > 0;
      const SharedProduct product{kernel, part, packed, scratch, own};
      product.pack(c.pool);
      product.multiply(c.pool);
    }
}

}  // namespace liuli
