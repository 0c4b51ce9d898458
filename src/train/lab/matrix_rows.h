// Rows that own their memory, and what an experiment asks of a row.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/rows.h"

namespace liuli::lab {

class MatrixRows {
 public:
  MatrixRows(int64_t n, int64_t width);  ///< zeros
  explicit MatrixRows(const std::vector<std::vector<double>>& rows);
  MatrixRows(std::span<const float> values, int64_t width);
  static MatrixRows random(uint64_t seed, int64_t n, int64_t width);  ///< rows of different size and mean

  Rows rows() const { return rows_; }

 private:
  AlignedBuffer memory_;
  Rows rows_;
};

struct RowStatistics {
  double mean = 0, sigma = 0;
};
RowStatistics row_statistics(Rows rows, int64_t row);
double cosine(const float* a, const float* b, int64_t n);

}  // namespace liuli::lab
