// The prompt product of 8-bit blocks (int8_blocks.h) in 256-bit registers: packing, the work at a block's end and the
// register tile, over `Products`, a level's way to the exact sums Σ c·q. Included only by ISA files; all of it has internal
// linkage.
//
// Products gives:
//   stored(q)                activations as they are packed, from signed bytes
//   prepare(weight, b, n)    what becomes of n blocks of expanded weights before they multiply
//   find<R>(weight)          &add_blocks<R, F>, for the form F that the weight's codes want:
//     F::kTwoScales, F::kMinimum     as the weight says
//     F::kShifted                    whether sums<part> leaves `shift` times Σ q to be added
//     F::sums<part>(a, b, values, acc)   of R rows and 16 columns of the output, acc[r][half]; `half` of the registers is
//                                    lanes 0 … 7 or 8 … 15
#pragma once
#include "kernels/avx2/prompt_strip.h"

namespace liuli::kernels {
namespace {

// Lines of activations that only these levels have: per row Σ q of the columns 0, 1, 4, 5, … and of the columns 2, 3, 6, 7,
// …, as two 16-bit integers; of the block's halves.
constexpr int kInt8RowPairs = kInt8RowHalfSums + 2 * kInt8Line;
static_assert(kInt8RowPairs + 2 * kInt8Line == kInt8Bytes);

LIULI_INLINE __m256 floats_at(const int8_t* lines) {
  return EightLanes::load_f32(reinterpret_cast<const float*>(lines));
}
LIULI_INLINE __m256 float_of_row(const int8_t* line, int r) {
  return EightLanes::as_f32(word_of_row(line, r));
}

/// sum += values of 16 or 32 bits. GCC lowers the intrinsics to its own addition, makes trees of chains of them and spills.
LIULI_INLINE void add_pairs(__m256i& sum, __m256i pairs) {
  asm("vpaddw %1, %0, %0" : "+x"(sum) : "x"(pairs));
}
LIULI_INLINE void add_words(__m256i& sum, __m256i words) {
  asm("vpaddd %1, %0, %0" : "+x"(sum) : "x"(words));
}

// ---- packing --------------------------------------------------------------------------------------------

using BlockColumns = float[kInt8Block][kPanelRows];

LIULI_INLINE __m256 largest(const BlockColumns& columns, int lane) {
  __m256 most = EightLanes::zero_f32();
  for (const auto& column : columns)
    most = EightLanes::larger_magnitude(most, EightLanes::load_f32(column + lane));
  return EightLanes::drop_below(most, kInt8Least);
}

// Rows `lane` … lane + 7 of a block; what is no small number becomes 0.
template <class Products>
LIULI_INLINE void pack_lanes(const BlockColumns& columns, int lane, int8_t* lines) {
  int8_t* out = lines + 4 * lane;
  const __m256 scale = EightLanes::mul(largest(columns, lane), EightLanes::set(kInt8ByLargest)),
               inverse = EightLanes::div(EightLanes::set(1.0f), scale);
  EightLanes::store(reinterpret_cast<float*>(out + kInt8RowScale), scale);
  __m256i pairs[2] = {EightLanes::zero(), EightLanes::zero()}, half_sum[2];
  for (int quad = 0; quad < kInt8Quads; quad++) {
    __m256i bytes = EightLanes::zero();
    for (int j = 0; j < 4; j++) {
      const __m256i q =
          _mm256_cvtps_epi32(EightLanes::mul(EightLanes::load_f32(columns[4 * quad + j] + lane), inverse));
      bytes = EightLanes::bor(bytes, _mm256_slli_epi32(EightLanes::band(q, EightLanes::words(255)), 8 * j));
    }
    __m256i& sum = pairs[quad / (kInt8Quads / 2)];
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(EightLanes::bytes(1), bytes));
    EightLanes::store(out + quad * kInt8Line, Products::stored(bytes));
  }
  for (int half = 0; half < 2; half++) {
    half_sum[half] = _mm256_madd_epi16(pairs[half], _mm256_set1_epi16(1));
    EightLanes::store(out + kInt8RowPairs + half * kInt8Line, pairs[half]);
    EightLanes::store(reinterpret_cast<float*>(out + kInt8RowHalfSums + half * kInt8Line),
                      EightLanes::to_f32(half_sum[half]));
  }
  EightLanes::store(reinterpret_cast<float*>(out + kInt8RowSum),
                    EightLanes::to_f32(EightLanes::add(half_sum[0], half_sum[1])));
}

// ---- the product ----------------------------------------------------------------------------------------

/// What a form has to know of its codes besides its type.
struct CodeValues {
  int center;   ///< taken off the codes inside the integer sums
  float shift;  ///< times Σ q is added to the sums, which is exact: they stay below 2^24
};

template <int R, class F>
struct BlockOfTile {
  static constexpr int row_sum(int part) {
    return F::kTwoScales ? kInt8RowHalfSums + part * kInt8Line : kInt8RowSum;
  }

  // What the block adds to eight outputs: the first part's share alone, or on top of it the second's.
  template <int part>
  LIULI_INLINE __m256 share(const int8_t* b, __m256i products, __m256 row_sum, __m256 shift, __m256 before) {
    __m256 sum = EightLanes::to_f32(products);
    if constexpr (F::kShifted) sum = EightLanes::fma(row_sum, shift, sum);
    const __m256 scale = floats_at(b + kInt8Scales + part * kInt8Line);
    __m256 f = part == 0 ? EightLanes::mul(sum, scale) : EightLanes::fma(sum, scale, before);
    if constexpr (F::kMinimum) f = EightLanes::fma(floats_at(b + kInt8Minima + part * kInt8Line), row_sum, f);
    return f;
  }

  LIULI_INLINE void add_to(const int8_t* a, const int8_t* b, const CodeValues& values,
                           float (*sums)[kPanelRows]) {
    alignas(32) float first[R][kPanelRows];
    const __m256 shift = EightLanes::set(values.shift);
    __m256i acc[R][2];
    F::template sums<0, R>(a, b, values, acc);
    if constexpr (F::kTwoScales) {
#pragma GCC unroll 6
      for (int r = 0; r < R; r++) {
        const __m256 row = float_of_row(a + row_sum(0), r);
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++)
          EightLanes::store(first[r] + 8 * half,
                            share<0>(b + 32 * half, acc[r][half], row, shift, EightLanes::zero_f32()));
      }
      F::template sums<1, R>(a, b, values, acc);
    }
#pragma GCC unroll 6
    for (int r = 0; r < R; r++) {
      const __m256 row = float_of_row(a + row_sum(F::kTwoScales), r),
                   row_scale = float_of_row(a + kInt8RowScale, r);
#pragma GCC unroll 2
      for (int half = 0; half < 2; half++) {
        float* sum = sums[r] + 8 * half;
        const __m256 before =
                         F::kTwoScales ? EightLanes::load_f32(first[r] + 8 * half) : EightLanes::zero_f32(),
                     f = share<F::kTwoScales>(b + 32 * half, acc[r][half], row, shift, before);
        EightLanes::store(sum, EightLanes::fma(f, row_scale, EightLanes::load_f32(sum)));
      }
    }
    asm volatile("" ::: "memory");  // GCC would carry the sums in registers that there are not
  }
};

using AddBlocks = void (*)(const int8_t* a, const int8_t* b, int blocks, CodeValues values,
                           float (*sums)[kPanelRows]);

template <int R, class F>
__attribute__((noinline)) void add_blocks(const int8_t* a, const int8_t* b, int blocks, CodeValues values,
                                          float (*sums)[kPanelRows]) {
  for (; blocks > 0; blocks--, a += kInt8Bytes, b += kInt8Bytes)
    BlockOfTile<R, F>::add_to(a, b, values, sums);
}

template <class Products>
struct Int8Engine : Int8Columns {
  // All rows of a strip while their activations and the panel are in L1: 14 KiB each, no multiple of 4 KiB.
  static constexpr int kRows = kStrip, kPanels = 1, kGroup = 4, kChunk = 512;

  static void expand(const WeightKernels& weight, const uint8_t* panel, int64_t k, int64_t k0, int64_t k1,
                     int8_t* b) {
    weight.expand_codes(panel, k, k0, k1, b);
    Products::prepare(weight, b, static_cast<int>((k1 - k0) / kInt8Block));
  }

  static void pack(const float* x, ptrdiff_t ldx, int rows, int64_t k, int8_t* out) {
    alignas(32) BlockColumns columns;
    for (int64_t i = 0; i < k; i += kInt8Block, out += kInt8Bytes) {
      for (int j = 0; j < kInt8Block; j += 8) transpose_rows(x, ldx, rows, i + j, k, columns[j]);
      for (int lane = 0; lane < kPanelRows; lane += 8) pack_lanes<Products>(columns, lane, out);
    }
  }

  template <int R, int P>
  static void tile(const RegisterTile<int8_t>& t) {
    multiply(t, R);
  }

  static __attribute__((noinline)) void multiply(const RegisterTile<int8_t>& t, int rows) {
    const CodeValues values = Products::values(*t.weight);
    multiply_strip(t, rows, [&](auto step, const int8_t* a, float(*sums)[kPanelRows]) {
      Products::template find<step.value> (*t.weight)(a, t.b, t.units / kInt8Quads, values, sums);
    });
  }
};

}  // namespace
}  // namespace liuli::kernels
