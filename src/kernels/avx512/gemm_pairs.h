// Packing plain f32 arrays as pairs of bf16, for the products that take two values of k at once.
#pragma once
#include "kernels/avx512/prompt_transpose.h"

namespace liuli::kernels {
namespace {

// 32 values of k from `at` on, of up to 16 members: zeros beyond k and n. A 32-bit word is the pair (k, k + 1).
struct PairBlock {
  const float* x;
  int64_t along, across;  // strides of k and between members; one of them is 1
  int64_t k, n;

  bool lies_by_member() const { return along == 1; }

  // lines[member] = its 16 pairs.
  void by_member(int64_t at, __m512i (&lines)[16]) const {
    for (int i = 0; i < 16; i++) {
      lines[i] = _mm512_setzero_si512();
      if (i >= n) continue;
      const float* row = x + i * across;
      lines[i] = (__m512i)_mm512_cvtne2ps_pbh(load_to_end(row, at + 16, k), load_to_end(row, at, k));
    }
  }
  // lines[pair] = that pair of 16 members.
  void by_pair(int64_t at, __m512i (&lines)[16]) const {
    alignas(64) static constexpr uint16_t kOrder[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                        21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                        11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i order = _mm512_load_si512(kOrder);
    for (int pair = 0; pair < 16; pair++) {
      const int64_t first = at + 2 * pair;
      const float* row = x + first * along;
      const __m512 even = first < k ? load_to_end(row, 0, n) : _mm512_setzero_ps();
      const __m512 odd = first + 1 < k ? load_to_end(row + along, 0, n) : _mm512_setzero_ps();
      lines[pair] = _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(odd, even));
    }
  }
  void members(int64_t at, __m512i (&lines)[16]) const {
    if (lies_by_member()) return by_member(at, lines);
    by_pair(at, lines);
    transpose_16x16(lines);
  }
  void pairs(int64_t at, __m512i (&lines)[16]) const {
    if (!lies_by_member()) return by_pair(at, lines);
    by_member(at, lines);
    transpose_16x16(lines);
  }
};

// A strip of `width` members, pair by pair: out[pair][width][2], for `padded` values of k.
template <int width>
void pack_pairs(const float* x, int64_t along, int64_t across, int64_t k, int64_t n, int64_t padded,
                uint16_t* out) {
  for (int64_t first = 0; first < width; first += 16) {
    const PairBlock block{x + first * across, along, across, k, n - first < 16 ? n - first : 16};
    for (int64_t at = 0; at < padded; at += 32) {
      __m512i lines[16];
      block.pairs(at, lines);
      for (int64_t pair = 0; pair < 16 && at + 2 * pair < padded; pair++)
        _mm512_storeu_si512(out + ((at / 2 + pair) * width + first) * 2, lines[pair]);
    }
  }
}

}  // namespace
}  // namespace liuli::kernels
