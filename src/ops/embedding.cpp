#include "ops/embedding.h"

#include <algorithm>

#include <cmath>

#include "core/check.h"

namespace liuli {

void embedding_forward(OpContext& c, const Matrix& table, std::span<const int> tokens, float scale, Rows x) {
  LIULI_CHECK(static_cast<int64_t>(tokens.size()) == x.n && table.d_in() == x.width);
  c.pool.parallel_for(x.n, [&](int64_t begin, int64_t end, int) {
    thread_local std::vector<uint8_t> file_row;  // kept: a generated token allocates nothing
    for (int64_t i = begin; i < end; i++) {
      table.decode_row(tokens[static_cast<size_t>(i)], x.row(i), file_row);
      if (scale != 1.0f) c.rows.scale(x.row(i), scale, x.width);
    }
  });
}

void embedding_backward(OpContext& c, float* d_table, std::span<const int> tokens, float scale, Rows dx,
                        int skipped) {
  LIULI_CHECK(static_cast<int64_t>(tokens.size()) == dx.n);
  if (d_table == nullptr) return;
  constexpr int64_t kColumns = 64;  // the threads share the columns: their number changes no bit
  c.pool.parallel_for((dx.width + kColumns - 1) / kColumns, [&](int64_t begin, int64_t end, int) {
    const int64_t first = begin * kColumns, last = std::min(end * kColumns, dx.width);
    for (int64_t i = 0; i < dx.n; i++) {
      if (tokens[static_cast<size_t>(i)] == skipped) continue;
      float* row = d_table + tokens[static_cast<size_t>(i)] * dx.width;
      for (int64_t j = first; j < last; j++) row[j] += scale * dx.row(i)[j];
    }
  });
}

void sinusoid_forward(OpContext& c, std::span<const int> positions, Rows x) {
  LIULI_CHECK(static_cast<int64_t>(positions.size()) == x.n && x.width % 2 == 0);
  std::vector<double> frequencies;
  for (int64_t i = 0; i < x.width; i += 2)
    frequencies.push_back(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(x.width)));
  for_each_row(c, x.n, [&](int64_t row) {
    float* out = x.row(row);
    for (const double frequency : frequencies) {
      const double angle = positions[static_cast<size_t>(row)] * frequency;
      *out++ = static_cast<float>(std::sin(angle));
      *out++ = static_cast<float>(std::cos(angle));
    }
  });
}

}  // namespace liuli
