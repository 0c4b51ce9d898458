// f32 rows to x16 activations, 8 values at a time; the same integers as scalar/quantize.cpp.
#include <immintrin.h>

#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

constexpr float kLargest = 32512.0f;  // 127 · 256: the largest |q| whose high plane fits i8 after rounding
constexpr float kTiny = 1e-30f;       // below it 32512 / max overflows; such a chunk counts as zero

// Values [i, i + 8) of n, zeros beyond.
__m256 load_present(const float* x, int n, int i) {
  if (n - i >= 8) return _mm256_loadu_ps(x + i);
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(n - i), lanes);
  return _mm256_maskload_ps(x + (i < n ? i : 0), mask);
}

// The largest |x| by integer comparison of the bits, so that a NaN wins over every number.
float magnitude(const float* x, int n) {
  __m256i top = _mm256_setzero_si256();
  for (int i = 0; i < n; i += 8) {
    const __m256i bits = _mm256_castps_si256(load_present(x, n, i));
    top = _mm256_max_epi32(top, _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff)));
  }
  __m128i v = _mm_max_epi32(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1));
  v = _mm_max_epi32(v, _mm_shuffle_epi32(v, 0x4e));
  v = _mm_max_epi32(v, _mm_shuffle_epi32(v, 0xb1));
  return _mm_cvtss_f32(_mm_castsi128_ps(v));
}

// Eight values of 32 bits to 16, in order; they fit.
__m128i to_16(__m256i v) {
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packs_epi32(v, v), 0x08));
}
__m128i to_8(__m256i a, __m256i b) { return _mm_packs_epi16(to_16(a), to_16(b)); }

int32_t sum_of(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

// Sixteen integers into the planes, the pairs (columns 0 2 1 3 of every four), and their sum.
void store_sixteen(__m256i a, __m256i b, int s, ActivationChunk& out) {
  const __m256i half = _mm256_set1_epi32(128);
  const __m256i ha = _mm256_srai_epi32(_mm256_add_epi32(a, half), 8),
                hb = _mm256_srai_epi32(_mm256_add_epi32(b, half), 8);
  const __m256i la = _mm256_sub_epi32(a, _mm256_slli_epi32(ha, 8)),
                lb = _mm256_sub_epi32(b, _mm256_slli_epi32(hb, 8));
  _mm_store_si128(reinterpret_cast<__m128i*>(out.hi + 16 * s), to_8(ha, hb));
  _mm_store_si128(reinterpret_cast<__m128i*>(out.lo + 16 * s), to_8(la, lb));
  _mm_store_si128(reinterpret_cast<__m128i*>(out.q + 16 * s), to_16(_mm256_shuffle_epi32(a, 0xd8)));
  _mm_store_si128(reinterpret_cast<__m128i*>(out.q + 16 * s + 8), to_16(_mm256_shuffle_epi32(b, 0xd8)));
  out.negative_sum16[s] = -sum_of(_mm256_add_epi32(a, b));
}

// The sums of 32 and the f32 forms, from the sixteen sums of 16.
void finish_sums(ActivationChunk& out) {
  for (int s = 0; s < 16; s++) out.sum16[s] = static_cast<float>(-out.negative_sum16[s]);
  for (int s = 0; s < 8; s++) {
    out.negative_sum32[s] = out.negative_sum16[2 * s] + out.negative_sum16[2 * s + 1];
    out.sum32[s] = static_cast<float>(-out.negative_sum32[s]);
  }
}

void quantize_chunk(const float* x, int n, ActivationChunk& out) {
  const float top = magnitude(x, n);
  const bool finite = top <= 3.402823466e38f, usable = finite && top >= kTiny;
  const __m256 inverse = _mm256_set1_ps(usable ? kLargest / top : 0.0f);
  out.scale = usable ? top / kLargest : finite ? 0.0f : __builtin_nanf("");
  const int used = usable ? n : 0;
  for (int s = 0; s < 16; s++) {
    const __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(load_present(x, used, 16 * s), inverse));
    const __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(load_present(x, used, 16 * s + 8), inverse));
    store_sixteen(a, b, s, out);
  }
  finish_sums(out);
}

void quantize(const float* x, ptrdiff_t ldx, int n_rows, int64_t k, ActivationChunk* out) noexcept {
  for (int m = 0; m < n_rows; m++)
    for (int64_t c = 0; c * 256 < k; c++)
      quantize_chunk(x + m * ldx + c * 256, static_cast<int>(k - c * 256 < 256 ? k - c * 256 : 256),
                     out[c * n_rows + m]);
}

}  // namespace

QuantizeRows quantize_x16_avx2() noexcept { return quantize; }

}  // namespace liuli::kernels
