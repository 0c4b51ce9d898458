// f32 rows to x16 activations, 16 values at a time; the same integers as scalar/quantize.cpp.
#include <immintrin.h>

#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

constexpr float kLargest = 32512.0f;  // 127 · 256: the largest |q| whose high plane fits i8 after rounding
constexpr float kTiny = 1e-30f;       // below it 32512 / max overflows; such a chunk counts as zero

__mmask16 present(int n, int i) {
  const int left = n - i;
  return left >= 16 ? 0xffff : left <= 0 ? 0 : static_cast<__mmask16>((1u << left) - 1);
}

// The largest |x| by integer comparison of the bits, so that a NaN wins over every number.
float magnitude(const float* x, int n) {
  __m512i top = _mm512_setzero_si512();
  for (int i = 0; i < n; i += 16) {
    const __m512i bits = _mm512_castps_si512(_mm512_maskz_loadu_ps(present(n, i), x + i));
    top = _mm512_max_epi32(top, _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff)));
  }
  return _mm512_cvtss_f32(_mm512_castsi512_ps(_mm512_set1_epi32(_mm512_reduce_max_epi32(top))));
}

// Sixteen integers into the planes, the pairs (columns 0 2 1 3 of every four), and their sum.
void store_sixteen(__m512i q, int s, ActivationChunk& out) {
  const __m512i hi = _mm512_srai_epi32(_mm512_add_epi32(q, _mm512_set1_epi32(128)), 8);
  const __m512i lo = _mm512_sub_epi32(q, _mm512_slli_epi32(hi, 8)),
                pairs = _mm512_shuffle_epi32(q, _MM_PERM_DBCA);
  _mm_store_si128(reinterpret_cast<__m128i*>(out.hi + 16 * s), _mm512_cvtepi32_epi8(hi));
  _mm_store_si128(reinterpret_cast<__m128i*>(out.lo + 16 * s), _mm512_cvtepi32_epi8(lo));
  _mm256_store_si256(reinterpret_cast<__m256i*>(out.q + 16 * s), _mm512_cvtepi32_epi16(pairs));
  out.negative_sum16[s] = -_mm512_reduce_add_epi32(q);
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
  const __m512 inverse = _mm512_set1_ps(usable ? kLargest / top : 0.0f);
  out.scale = usable ? top / kLargest : finite ? 0.0f : __builtin_nanf("");
  for (int s = 0; s < 16; s++) {
    const __mmask16 mask = usable ? present(n, 16 * s) : 0;
    store_sixteen(_mm512_cvtps_epi32(_mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + 16 * s), inverse)), s,
                  out);
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

QuantizeRows quantize_x16_avx512() noexcept { return quantize; }

}  // namespace liuli::kernels
