// Reading rows whose length is no multiple of a vector.
#pragma once
#include <immintrin.h>

#include <cstdint>

namespace liuli::kernels {
namespace {

// Values [i, i + 16) of a row that ends at k; zeros beyond.
inline __m512 load_to_end(const float* row, int64_t i, int64_t k) {
  if (i + 16 <= k) return _mm512_loadu_ps(row + i);
  if (i >= k) return _mm512_setzero_ps();
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << (k - i)) - 1), row + i);
}

}  // namespace
}  // namespace liuli::kernels
