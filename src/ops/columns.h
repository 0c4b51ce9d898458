// Sums down the columns of rows: gradients of whatever all rows share.
#pragma once
#include "ops/context.h"

namespace liuli {

/// sums[j] += Σ_i f(i, j) for j in [0, width), rows ascending, in double; the threads share the columns, so that their
/// number changes no bit.
template <class F>
void add_column_sums(OpContext& c, int64_t n_rows, int64_t width, float* sums, F&& f) {
  constexpr int64_t kColumns = 64;  // a run of a row that is read together
  c.pool.parallel_for((width + kColumns - 1) / kColumns, [&](int64_t begin, int64_t end, int) {
    for (int64_t first = begin * kColumns; first < std::min(end * kColumns, width); first += kColumns) {
      const int64_t n = std::min(kColumns, width - first);
      double total[kColumns] = {};
      for (int64_t i = 0; i < n_rows; i++)
        for (int64_t j = 0; j < n; j++) total[j] += static_cast<double>(f(i, first + j));
      for (int64_t j = 0; j < n; j++) sums[first + j] += static_cast<float>(total[j]);
    }
  });
}

inline void add_column_sums(OpContext& c, Rows x, float* sums) {
  add_column_sums(c, x.n, x.width, sums, [&](int64_t i, int64_t j) { return x.row(i)[j]; });
}

}  // namespace liuli
