// The prompt product of 8-bit blocks by vpmaddubsw: the scalar level's bits. The unsigned factor is |code| and the signed one
// is q with the code's sign: pairs of q + 128 times codes of eight bits would not fit 16 bits, 2 · 128 · 127 does.
#include "kernels/avx2/prompt_transpose.h"
#include "kernels/avx2/vector.h"

#include "kernels/isa_tables.h"
#include "kernels/prompt_blocked.h"

namespace liuli::kernels {
namespace {

inline float float_at(const int8_t* line) {
  float value;
  __builtin_memcpy(&value, line, sizeof value);
  return value;
}
LIULI_INLINE __m256 floats_at(const int8_t* lines) {
  return EightLanes::load_f32(reinterpret_cast<const float*>(lines));
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
LIULI_INLINE void pack_lanes(const BlockColumns& columns, int lane, int8_t* lines) {
  int8_t* out = lines + 4 * lane;
  const __m256 scale = EightLanes::mul(largest(columns, lane), EightLanes::set(kInt8ByLargest)),
               inverse = EightLanes::div(EightLanes::set(1.0f), scale);
  EightLanes::store(reinterpret_cast<float*>(out + kInt8RowScale), scale);
  __m256i half_sum[2] = {EightLanes::zero(), EightLanes::zero()};
  for (int quad = 0; quad < kInt8Quads; quad++) {
    __m256i bytes = EightLanes::zero();
    for (int j = 0; j < 4; j++) {
      const __m256i q =
          _mm256_cvtps_epi32(EightLanes::mul(EightLanes::load_f32(columns[4 * quad + j] + lane), inverse));
      bytes = EightLanes::bor(bytes, _mm256_slli_epi32(EightLanes::band(q, EightLanes::words(255)), 8 * j));
    }
    __m256i& sum = half_sum[quad / (kInt8Quads / 2)];
    const __m256i pairs = _mm256_maddubs_epi16(EightLanes::bytes(1), bytes);
    sum = EightLanes::add(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    EightLanes::store(out + quad * kInt8Line, EightLanes::bxor(bytes, EightLanes::bytes(128)));
  }
  EightLanes::store(reinterpret_cast<float*>(out + kInt8RowSum),
                    EightLanes::to_f32(EightLanes::add(half_sum[0], half_sum[1])));
  for (int half = 0; half < 2; half++)
    EightLanes::store(reinterpret_cast<float*>(out + kInt8RowHalfSums + half * kInt8Line),
                      EightLanes::to_f32(half_sum[half]));
}

// ---- the product ----------------------------------------------------------------------------------------

// R rows times a panel in one block of 32 columns; `half` of the registers is lanes 0 … 7 or 8 … 15.
template <int R, bool two_scales, bool has_minimum>
struct BlockOfTile {
  const int8_t *a, *b;

  template <int part>
  LIULI_INLINE void add_products(const BlockOfTile& t, __m256i (&acc)[R][2]) {
    constexpr int quads = two_scales ? kInt8Quads / 2 : kInt8Quads;
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) acc[r][0] = acc[r][1] = EightLanes::zero();
    for (int i = part * quads; i < part * quads + quads; i++) {
      const __m256i w[2] = {EightLanes::load(t.b + i * kInt8Line),
                            EightLanes::load(t.b + i * kInt8Line + 32)};
      const __m256i size[2] = {_mm256_abs_epi8(w[0]), _mm256_abs_epi8(w[1])};
#pragma GCC unroll 4
      for (int r = 0; r < R; r++) {
        int four;
        __builtin_memcpy(&four, t.a + i * kInt8Line + 4 * r, sizeof four);
        const __m256i q = EightLanes::words(static_cast<int>(static_cast<unsigned>(four) ^ 0x80808080u));
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
          const __m256i pairs = _mm256_maddubs_epi16(size[half], _mm256_sign_epi8(q, w[half]));
          acc[r][half] = EightLanes::add(acc[r][half], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
        }
      }
    }
  }

  // What the block adds to eight outputs: the first part's share alone, or on top of it the second's.
  template <int part>
  LIULI_INLINE __m256 share(const BlockOfTile& t, __m256i products, int r, int half, __m256 before) {
    const __m256 scale = floats_at(t.b + kInt8Scales + part * kInt8Line + 32 * half),
                 sum = EightLanes::to_f32(products);
    __m256 f = part == 0 ? EightLanes::mul(sum, scale) : EightLanes::fma(sum, scale, before);
    if constexpr (has_minimum) {
      constexpr int offset = two_scales ? kInt8RowHalfSums + part * kInt8Line : kInt8RowSum;
      f = EightLanes::fma(floats_at(t.b + kInt8Minima + part * kInt8Line + 32 * half),
                          EightLanes::set(float_at(t.a + offset + 4 * r)), f);
    }
    return f;
  }

  LIULI_INLINE void add_to(const BlockOfTile& t, float (*sums)[kPanelRows]) {
    alignas(32) float first[R][kPanelRows];
    __m256i acc[R][2];
    add_products<0>(t, acc);
    if constexpr (two_scales) {
      for (int r = 0; r < R; r++)
        for (int half = 0; half < 2; half++)
          EightLanes::store(first[r] + 8 * half, share<0>(t, acc[r][half], r, half, EightLanes::zero_f32()));
      add_products<1>(t, acc);
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 2
      for (int half = 0; half < 2; half++) {
        float* sum = sums[r] + 8 * half;
        __m256 f;
        if constexpr (two_scales)
          f = share<1>(t, acc[r][half], r, half, EightLanes::load_f32(first[r] + 8 * half));
        else
          f = share<0>(t, acc[r][half], r, half, EightLanes::zero_f32());
        EightLanes::store(sum, EightLanes::fma(f, EightLanes::set(float_at(t.a + kInt8RowScale + 4 * r)),
                                               EightLanes::load_f32(sum)));
      }
  }
};

struct Avx2Int8 : Int8Columns {
  static constexpr int kRows = 4, kPanels = 1, kGroup = 4, kChunk = 512;

  static void pack(const float* x, ptrdiff_t ldx, int rows, int64_t k, int8_t* out) {
    alignas(32) BlockColumns columns;
    for (int64_t i = 0; i < k; i += kInt8Block, out += kInt8Bytes) {
      for (int j = 0; j < kInt8Block; j += 8) transpose_rows(x, ldx, rows, i + j, k, columns[j]);
      for (int lane = 0; lane < kPanelRows; lane += 8) pack_lanes(columns, lane, out);
    }
  }

  template <int R, int P>
  static void tile(const RegisterTile<int8_t>& t) {
    alignas(32) float sums[R][kPanelRows] = {};
    if (t.c_in)
      for (int r = 0; r < R; r++) __builtin_memcpy(sums[r], t.c_in + r * t.ldc_in, sizeof sums[r]);
    if (t.weight->two_scales)
      t.weight->has_minimum ? add_blocks<R, true, true>(t, sums) : add_blocks<R, true, false>(t, sums);
    else
      t.weight->has_minimum ? add_blocks<R, false, true>(t, sums) : add_blocks<R, false, false>(t, sums);
    for (int r = 0; r < R; r++) __builtin_memcpy(t.c_out + r * t.ldc_out, sums[r], sizeof sums[r]);
  }

  template <int R, bool two_scales, bool has_minimum>
  static __attribute__((noinline)) void add_blocks(const RegisterTile<int8_t>& t, float (*sums)[kPanelRows]) {
    using Block = BlockOfTile<R, two_scales, has_minimum>;
    const int8_t *a = t.a, *b = t.b;
    for (int left = t.units; left > 0; left -= kInt8Quads, a += kInt8Bytes, b += kInt8Bytes)
      Block::add_to(Block{a, b}, sums);
  }
};

}  // namespace

const PromptKernels* prompt_int8_avx2() noexcept {
  static constexpr PromptKernels kernels = BlockedPrompt<Avx2Int8>::table("8-bit blocks of 32, AVX2");
  return &kernels;
}

}  // namespace liuli::kernels
