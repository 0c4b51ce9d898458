// F16 weights in 16-bit fixed point (fixed16.h), the bits of fixed16_lanes.h. The squares of a block are added one after
// another: four blocks side by side hide that latency. The largest value is found among the halves as they lie. With
// one block at a time, by way of floats in L1, expansion took 21 % of a prompt's time at 32 rows per matrix (experts),
// as much as the products.
#include "kernels/avx512/vector.h"
#include "kernels/fixed16.h"
#include "kernels/weights_bf16.h"

namespace liuli::kernels {
namespace {

constexpr int kLines = kFixedBlock / 2, kTogether = 4;

struct Columns {
  __m512 even, odd;
};
// Two columns of 16 rows.
LIULI_INLINE Columns columns_of(const uint8_t* line) {
  alignas(64) static constexpr uint16_t kApart[32] = {0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20,
                                                      22, 24, 26, 28, 30, 1,  3,  5,  7,  9,  11,
                                                      13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
  const __m512i v = _mm512_permutexvar_epi16(_mm512_load_si512(kApart), Vec::load(line));
  return {_mm512_cvtph_ps(_mm512_castsi512_si256(v)), _mm512_cvtph_ps(_mm512_extracti64x4_epi64(v, 1))};
}

// max |x| of a block.
LIULI_INLINE Vec::F largest(const uint8_t* block) {
  __m512i most = Vec::zero();
  for (int i = 0; i < kLines; i++)
    most = _mm512_max_epu16(most, Vec::band(Vec::load(block + 64 * i), Vec::words(0x7fff7fff)));
  return Vec::drop_below(Vec::half_of_word(_mm512_max_epu16(most, Vec::shift<16>(most))), kFixedLeast);
}

// `next`: the same columns of the panel that is expanded next, fetched at the pace of this one.
template <int n>
LIULI_INLINE void expand_blocks(const uint8_t* blocks, const uint8_t* next, int16_t* lines) {
  constexpr int bytes = 64 * kLines, out = kFixedLines * kFixedLine;
  __m512 most[n], to_one[n], squares[n];
  for (int b = 0; b < n; b++) {
    most[b] = largest(blocks + b * bytes);
    to_one[b] = Vec::div(Vec::set(1.0f), most[b]);
    squares[b] = Vec::zero_f32();
  }
  for (int i = 0; i < kLines; i++)
#pragma GCC unroll 4
    for (int b = 0; b < n; b++) {
      __builtin_prefetch(next + b * bytes + 64 * i, 0, 2);
      const Columns x = columns_of(blocks + b * bytes + 64 * i);
      const __m512 even = Vec::mul(x.even, to_one[b]), odd = Vec::mul(x.odd, to_one[b]);
      squares[b] = Vec::fma(odd, odd, Vec::fma(even, even, squares[b]));
    }
  for (int b = 0; b < n; b++, lines += out) {
    const __m512 step =
        Vec::larger(Vec::mul(Vec::sqrt(squares[b]), Vec::set(kFixedByLength)), Vec::set(kFixedByLargest));
    const __m512 scale = Vec::mul(most[b], step), inverse = Vec::div(Vec::set(1.0f), scale);
    for (int i = 0; i < kLines; i++) {
      const Columns x = columns_of(blocks + b * bytes + 64 * i);
      Vec::store(lines + i * kFixedLine,
                 Vec::pair_of_int16(Vec::mul(x.even, inverse), Vec::mul(x.odd, inverse)));
    }
    Vec::store(reinterpret_cast<float*>(lines + kFixedScales), scale);
  }
}

// A line of the panel is a line of the block: [16 rows][2 columns].
void expand(const uint8_t* panel, int64_t k, int64_t k_begin, int64_t k_end, int16_t* lines) noexcept {
  const uint8_t* next = panel + (k + kPanelK - 1) / kPanelK * kPanelK * 32;
  int64_t at = k_begin;
  for (; at + kTogether * kFixedBlock <= k_end; at += kTogether * kFixedBlock) {
    expand_blocks<kTogether>(panel + 32 * at, next + 32 * at, lines);
    lines += kTogether * kFixedLines * kFixedLine;
  }
  for (; at < k_end; at += kFixedBlock, lines += kFixedLines * kFixedLine)
    expand_blocks<1>(panel + 32 * at, next + 32 * at, lines);
}

}  // namespace

void set_expand_fixed16_avx512(WeightTable& table) noexcept {
  table.by_type[static_cast<int>(DType::f16)].expand_fixed16 = &expand;
}

}  // namespace liuli::kernels
