#include "train/lab/matrix_rows.h"

#include <cmath>

#include "core/rng.h"

namespace liuli::lab {

MatrixRows::MatrixRows(int64_t n, int64_t width)
    : memory_(static_cast<size_t>(n * round_up(width, 64)) * sizeof(float)),
      rows_{memory_.as<float>(), n, width, round_up(width, 64)} {}

MatrixRows::MatrixRows(const std::vector<std::vector<double>>& rows)
    : MatrixRows(static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows.front().size())) {
  for (size_t i = 0; i < rows.size(); i++)
    for (size_t j = 0; j < rows[i].size(); j++)
      rows_.row(static_cast<int64_t>(i))[j] = static_cast<float>(rows[i][j]);
}

MatrixRows::MatrixRows(std::span<const float> values, int64_t width)
    : MatrixRows(static_cast<int64_t>(values.size()) / width, width) {
  for (int64_t i = 0; i < rows_.n; i++)
    for (int64_t j = 0; j < width; j++) rows_.row(i)[j] = values[static_cast<size_t>(i * width + j)];
}

MatrixRows MatrixRows::random(uint64_t seed, int64_t n, int64_t width) {
  MatrixRows x(n, width);
  Rng rng(seed, 5);
  for (int64_t i = 0; i < n; i++) {
    const double size = std::exp(rng.normal()), shift = rng.normal();
    for (int64_t j = 0; j < width; j++) x.rows_.row(i)[j] = static_cast<float>(size * rng.normal() + shift);
  }
  return x;
}

RowStatistics row_statistics(Rows rows, int64_t row) {
  const float* x = rows.row(row);
  double mean = 0, square = 0;
  for (int64_t j = 0; j < rows.width; j++) mean += static_cast<double>(x[j]);
  mean /= static_cast<double>(rows.width);
  for (int64_t j = 0; j < rows.width; j++)
    square += (static_cast<double>(x[j]) - mean) * (static_cast<double>(x[j]) - mean);
  return {mean, std::sqrt(square / static_cast<double>(rows.width))};
}

double cosine(const float* a, const float* b, int64_t n) {
  double ab = 0, aa = 0, bb = 0;
  for (int64_t i = 0; i < n; i++) {
    ab += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    aa += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    bb += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return ab / std::sqrt(aa * bb);
}

}  // namespace liuli::lab
