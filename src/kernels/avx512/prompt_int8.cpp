// The prompt product of 8-bit blocks by vpdpbusd: unsigned activations (q + 128) times signed codes, four columns at a time
// into 32-bit integers; twice as many products per instruction as vdpbf16ps.
#include "kernels/avx512/prompt_transpose.h"
#include "kernels/avx512/vector.h"

#include "kernels/isa_tables.h"
#include "kernels/prompt_blocked.h"

namespace liuli::kernels {
namespace {

inline __m512 floats_at(const int8_t* lines) {
  return _mm512_loadu_ps(reinterpret_cast<const float*>(lines));
}
inline float float_at(const int8_t* line) {
  float value;
  __builtin_memcpy(&value, line, sizeof value);
  return value;
}

// ---- packing: two blocks of 16 rows at a time -----------------------------------------------------------

constexpr int kTogether = 2 * kInt8Block;

// The largest magnitude of every row's 32 values from column i on, by their bits: NaN is the largest.
inline __m512 largest_of_rows(const float* x, ptrdiff_t ldx, int rows, int64_t i, int64_t k) {
  __m512i most[kStrip];
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  for (int r = 0; r < kStrip; r++) {
    most[r] = _mm512_setzero_si512();
    if (r >= rows) continue;
    for (int j = 0; j < kInt8Block; j += 16) {
      const __m512i bits = _mm512_castps_si512(load_to_end(x + r * ldx, i + j, k));
      most[r] = _mm512_max_epu32(most[r], _mm512_and_si512(bits, magnitude));
    }
  }
  transpose_16x16(most);
  for (int n = kStrip / 2; n > 0; n /= 2)
    for (int r = 0; r < n; r++) most[r] = _mm512_max_epu32(most[r], most[r + n]);
  return Vec::drop_below(_mm512_castsi512_ps(most[0]), kInt8Least);
}

// Scales of a block's rows into their line; what x is multiplied by into `inverse`.
inline void put_scales(__m512 most, int8_t* lines, float* inverse) {
  const __m512 scale = Vec::mul(most, Vec::set(kInt8ByLargest));
  Vec::store(reinterpret_cast<float*>(lines + kInt8RowScale), scale);
  Vec::store(inverse, Vec::div(Vec::set(1.0f), scale));
}

// Σ q of the block and its halves, from the lines of q + 128.
inline void put_sums(int8_t* lines) {
  __m512i sum[2];
  for (int half = 0; half < 2; half++) {
    sum[half] = _mm512_set1_epi32(-128 * kInt8Block / 2);
    for (int i = 0; i < kInt8Quads / 2; i++)
      sum[half] = _mm512_dpbusd_epi32(sum[half], Vec::load(lines + (half * kInt8Quads / 2 + i) * kInt8Line),
                                      Vec::bytes(1));
    Vec::store(reinterpret_cast<float*>(lines + kInt8RowHalfSums + half * kInt8Line), Vec::to_f32(sum[half]));
  }
  Vec::store(reinterpret_cast<float*>(lines + kInt8RowSum), Vec::to_f32(Vec::add(sum[0], sum[1])));
}

// 16 values of a row as bytes; what is no small number becomes 0.
inline __m128i quantised(__m512 x, float inverse) {
  return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(x, _mm512_set1_ps(inverse))));
}

inline void pack_two_blocks(const float* x, ptrdiff_t ldx, int rows, int64_t i, int64_t k, int8_t* out) {
  const int blocks = k - i > kInt8Block ? 2 : 1;
  alignas(64) float inverse[2][kStrip] = {};
  alignas(64) int8_t bytes[kStrip][kTogether] = {};
  for (int b = 0; b < blocks; b++)
    put_scales(largest_of_rows(x, ldx, rows, i + b * kInt8Block, k), out + b * kInt8Bytes, inverse[b]);
  for (int r = 0; r < rows; r++)
    for (int j = 0; j < blocks * kInt8Block; j += 16)
      _mm_store_si128(reinterpret_cast<__m128i*>(bytes[r] + j),
                      quantised(load_to_end(x + r * ldx, i + j, k), inverse[j / kInt8Block][r]));
  __m512i quads[16];
  for (int r = 0; r < kStrip; r++) quads[r] = Vec::load(bytes[r]);
  transpose_16x16(quads);
  for (int b = 0; b < blocks; b++, out += kInt8Bytes) {
    for (int j = 0; j < kInt8Quads; j++)
      Vec::store(out + j * kInt8Line, Vec::bxor(quads[b * kInt8Quads + j], Vec::bytes(128)));
    put_sums(out);
  }
}

#define LIULI_MEMBER inline __attribute__((always_inline))

// ---- the product ----------------------------------------------------------------------------------------

// GCC 12 copies and spills every accumulator of _mm512_dpbusd_epi32.
inline __attribute__((always_inline)) __m512i dot(__m512i sum, __m512i x, __m512i codes) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(codes));
  return sum;
}

// R rows times P panels in one block of 32 columns: one integer sum per scale.
template <int R, int P, bool two_scales, bool has_minimum>
struct BlockOfTile {
  using Sums = float (*)[P][kPanelRows];
  static constexpr int kParts = two_scales ? 2 : 1, kQuads = kInt8Quads / kParts;
  const int8_t *a, *b;
  ptrdiff_t b_panel;

  LIULI_MEMBER __m512 line(int p, int offset) const { return floats_at(b + p * b_panel + offset); }

  LIULI_MEMBER void start(__m512i (&acc)[kParts][R][P]) const {
#pragma GCC unroll 2
    for (int part = 0; part < kParts; part++)
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) {
        const __m512i first = Vec::load(b + p * b_panel + kInt8Starts + part * kInt8Line);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) acc[part][r][p] = first;
      }
  }

  // Four columns.
  LIULI_MEMBER void add_quad(int quad, __m512i (&acc)[R][P]) const {
    __m512i w[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; p++) w[p] = Vec::load(b + p * b_panel + quad * kInt8Line);
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      int four;
      __builtin_memcpy(&four, a + quad * kInt8Line + 4 * r, sizeof four);
      const __m512i x = _mm512_set1_epi32(four);
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) acc[r][p] = dot(acc[r][p], x, w[p]);
    }
  }

  // What one scale's columns add to an output, without the row's scale, on top of those before.
  template <int part>
  LIULI_MEMBER __m512 share(__m512i products, int r, int p, __m512 before) const {
    const __m512 scale = line(p, kInt8Scales + part * kInt8Line), sum = Vec::to_f32(products);
    __m512 f = part == 0 ? Vec::mul(sum, scale) : Vec::fma(sum, scale, before);
    if constexpr (has_minimum) {
      constexpr int offset = two_scales ? kInt8RowHalfSums + part * kInt8Line : kInt8RowSum;
      f = Vec::fma(line(p, kInt8Minima + part * kInt8Line), Vec::set(float_at(a + offset + 4 * r)), f);
    }
    return f;
  }

  LIULI_MEMBER void add_to(Sums sums) const {
    __m512i acc[kParts][R][P];
    start(acc);
    for (int i = 0; i < kQuads; i++)
#pragma GCC unroll 2
      for (int part = 0; part < kParts; part++) add_quad(part * kQuads + i, acc[part]);
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      const __m512 row_scale = Vec::set(float_at(a + kInt8RowScale + 4 * r));
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) {
        __m512 f = share<0>(acc[0][r][p], r, p, Vec::zero_f32());
        if constexpr (two_scales) f = share<1>(acc[kParts - 1][r][p], r, p, f);
        Vec::store(sums[r][p], Vec::fma(f, row_scale, Vec::load_f32(sums[r][p])));
      }
    }
    asm volatile("" ::: "memory");  // GCC would carry the sums in registers that there are not
  }
};

struct Avx512Int8 : Int8Columns {
  // A panel's chunk is no multiple of 4 KiB: with 1024 columns (seven pages) the lines of a tile's panels fell into the
  // same sets of L1, and prompts of an 8B width ran at 926 tokens/s in place of 1040.
  static constexpr int kRows = 8, kPanels = 3, kGroup = 6, kChunk = 736;

  static void pack(const float* x, ptrdiff_t ldx, int rows, int64_t k, int8_t* out) {
    for (int64_t i = 0; i < k; i += kTogether, out += 2 * kInt8Bytes)
      pack_two_blocks(x, ldx, rows, i, k, out);
  }

  // 24 accumulators of integers in registers; the f32 sums wait in L1 for the end of a block.
  template <int R, int P>
  static void tile(const RegisterTile<int8_t>& t) {
    alignas(64) float sums[R][P][kPanelRows];
    for (int r = 0; r < R; r++)
      for (int p = 0; p < P; p++)
        Vec::store(sums[r][p],
                   t.c_in ? Vec::load_f32(t.c_in + r * t.ldc_in + p * kPanelRows) : Vec::zero_f32());
    if (t.weight->two_scales)
      t.weight->has_minimum ? add_blocks<R, P, true, true>(t, sums) : add_blocks<R, P, true, false>(t, sums);
    else
      t.weight->has_minimum ? add_blocks<R, P, false, true>(t, sums)
                            : add_blocks<R, P, false, false>(t, sums);
    for (int r = 0; r < R; r++)
      for (int p = 0; p < P; p++)
        Vec::store(t.c_out + r * t.ldc_out + p * kPanelRows, Vec::load_f32(sums[r][p]));
  }

  template <int R, int P, bool two_scales, bool has_minimum>
  static __attribute__((noinline)) void add_blocks(const RegisterTile<int8_t>& t,
                                                   float (*sums)[P][kPanelRows]) {
    const int8_t *a = t.a, *b = t.b;
    for (int left = t.units; left > 0; left -= kInt8Quads, a += kInt8Bytes, b += kInt8Bytes) {
      if constexpr (two_scales && R > kRows / 2) {  // two sums per output: half as many outputs at a time
        BlockOfTile<kRows / 2, P, true, has_minimum>{a, b, t.b_panel}.add_to(sums);
        BlockOfTile<R - kRows / 2, P, true, has_minimum>{a + 4 * (kRows / 2), b, t.b_panel}.add_to(sums +
                                                                                                   kRows / 2);
      } else {
        BlockOfTile<R, P, two_scales, has_minimum>{a, b, t.b_panel}.add_to(sums);
      }
    }
  }
};

}  // namespace

const PromptKernels* prompt_int8_avx512() noexcept {
  static constexpr PromptKernels kernels =
      BlockedPrompt<Avx512Int8>::table("8-bit blocks of 32, AVX-512 VNNI");
  return &kernels;
}

}  // namespace liuli::kernels
