// FP8 E4M3 with an f32 scale per 128 columns: products over decoded weights, as the other float types. Included only by
// ISA files, after granule_float.h's plain and chunked types.
//
// A code moved to where an f32 keeps its exponent and mantissa is its value times 2^−120, also below 2^−6 (an f32
// subnormal then). So weight = moved · (scale · 2^120), one rounding like the published value · scale, unless the
// scale is 128 or more or a code is NaN: blocks with such take two products and a mask.
#pragma once
#include "kernels/granule_types.h"

namespace liuli::kernels {
namespace {

struct Fp8Block {
  static constexpr int kBytes = 2112, kColumns = 128;
  const uint8_t* lines;
  Vec::F scale, scale_up;
  LIULI_INLINE Vec::I line(const Fp8Block& b, int i) { return Vec::load(b.lines + 64 * i); }
};

LIULI_INLINE Fp8Block fp8_block(const uint8_t* panel, int64_t block) {
  const uint8_t* at = panel + block * Fp8Block::kBytes;
  const Vec::F scale = Vec::load_f32(reinterpret_cast<const float*>(at));
  return {at + 64, scale, Vec::mul(scale, Vec::set(0x1p120f))};
}

// Whether quads [begin, end) of the block need more than the one product.
LIULI_INLINE bool fp8_needs_care(const Fp8Block& b, int begin, int end) {
  const Vec::I magnitude = Vec::band(Vec::as_words(b.scale), Vec::words(0x7fffffff));
  Vec::I found = Vec::if_less(magnitude, Vec::words(0x43000000), Vec::zero(), Vec::bytes(128));
  for (int i = begin; i < end; i++)
    found = Vec::bor(found, Vec::add_bytes(Vec::band(Fp8Block::line(b, i), Vec::bytes(127)), Vec::bytes(1)));
  return Vec::any(Vec::band(found, Vec::bytes(128)));
}

// Column J of the four in every lane.
template <int J, bool careful>
LIULI_INLINE Vec::F fp8_weight(const Fp8Block& b, Vec::I codes) {
  const Vec::I code = Vec::shift<8 * J - 24>(codes);
  const Vec::F moved =
      Vec::as_f32(Vec::band(Vec::signed_shift<4>(code), Vec::words(static_cast<int>(0x87f00000))));
  if constexpr (!careful) return Vec::mul(moved, b.scale_up);
  const Vec::F weight = Vec::mul(Vec::mul(moved, Vec::set(0x1p120f)), b.scale);
  const Vec::I bits = Vec::band(code, Vec::words(0x7f000000));
  return Vec::as_f32(
      Vec::if_equal(bits, Vec::words(0x7f000000), Vec::words(0x7fc00000), Vec::as_words(weight)));
}

template <int R, bool split, bool careful>
LIULI_INLINE void fp8_add_block(const Fp8Block& b, const float* x, ptrdiff_t ldx, Vec::F (&even)[R],
                                Vec::F (&odd)[R]) {
  for (int i = 0; i < 32; i++) {
    const Vec::I codes = Fp8Block::line(b, i);
    __builtin_prefetch(b.lines + 64 * i + 4096, 0, 3);
    const Vec::F w[4] = {fp8_weight<0, careful>(b, codes), fp8_weight<1, careful>(b, codes),
                         fp8_weight<2, careful>(b, codes), fp8_weight<3, careful>(b, codes)};
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        Vec::F& sum = split && j % 2 == 1 ? odd[r] : even[r];
        sum = Vec::fma(w[j], Vec::set(x[r * ldx + 4 * i + j]), sum);
      }
    }
  }
}

// R rows at once; accumulators as in plain_rows.
template <int R, bool split>
void fp8_rows(const uint8_t* panel, int64_t k, const float* x, ptrdiff_t ldx, float* y, ptrdiff_t ldy) {
  Vec::F even[R], odd[R];
  for (int r = 0; r < R; r++) even[r] = odd[r] = Vec::zero_f32();
  for (int64_t block = 0; block < k / Fp8Block::kColumns; block++) {
    const Fp8Block b = fp8_block(panel, block);
    const float* xb = x + block * Fp8Block::kColumns;
    if (fp8_needs_care(b, 0, 32))
      fp8_add_block<R, split, true>(b, xb, ldx, even, odd);
    else
      fp8_add_block<R, split, false>(b, xb, ldx, even, odd);
  }
  for (int r = 0; r < R; r++) Vec::store(y + r * ldy, split ? Vec::add(even[r], odd[r]) : even[r]);
}

template <bool split>
void fp8_product(const uint8_t* panel, int64_t k, const float* x, ptrdiff_t ldx, int n_rows, float* y,
                 ptrdiff_t ldy) noexcept {
  // Sums that wait in L1 cost less than working a weight out once more (AVX2, four rows: 3.4 -> 4.6 GiB/s).
  constexpr int most = split && Vec::kSums < 16 ? 4 : 8;
  int m = 0;
  for (; m + most <= n_rows; m += most) fp8_rows<most, split>(panel, k, x + m * ldx, ldx, y + m * ldy, ldy);
  for (; m + 2 <= n_rows; m += 2) fp8_rows<2, split>(panel, k, x + m * ldx, ldx, y + m * ldy, ldy);
  if (m < n_rows) fp8_rows<1, split>(panel, k, x + m * ldx, ldx, y + m * ldy, ldy);
}

template <bool careful>
LIULI_INLINE void fp8_expand_quads(const Fp8Block& b, int first, uint16_t* tiles) {
  for (int i = first; i < first + 8; i++, tiles += 64) {
    const Vec::I codes = Fp8Block::line(b, i);
    Vec::store(tiles, Vec::pair_of_bf16(fp8_weight<0, careful>(b, codes), fp8_weight<1, careful>(b, codes)));
    Vec::store(tiles + 32,
               Vec::pair_of_bf16(fp8_weight<2, careful>(b, codes), fp8_weight<3, careful>(b, codes)));
  }
}

void fp8_expand(const uint8_t* panel, int64_t k, int64_t k_begin, int64_t k_end, uint16_t* tiles) noexcept {
  (void)k;  // whole blocks of 128 columns
  for (int64_t column = k_begin; column < k_end; column += 32, tiles += 32 * kPanelRows) {
    const Fp8Block b = fp8_block(panel, column / Fp8Block::kColumns);
    const int first = static_cast<int>(column % Fp8Block::kColumns / 4);
    if (fp8_needs_care(b, first, first + 8))
      fp8_expand_quads<true>(b, first, tiles);
    else
      fp8_expand_quads<false>(b, first, tiles);
  }
}

void set_fp8(WeightKernels& w) {
  w.decode_f32 = fp8_product<true>;
  w.product_f32 = fp8_product<false>;
  w.expand_bf16 = fp8_expand;
}

}  // namespace
}  // namespace liuli::kernels
