// The prompt product of 8-bit blocks by vpmaddubsw, unsigned codes times signed activations: the scalar level's bits.
//
// Codes lose their least value, c = u + least, and what is taken too much, least · Σ q, is added in the end. Of codes of few
// bits all of a scale's columns fit one 16-bit sum, so that four columns cost a product and an addition:
//
//   plain, shifted   |Σ u·q| < 2^15: up to four bits (five, where a scale has 16 columns)
//   centred          |Σ (u − center)·q| < 2^15: a bit more. Sums modulo 2^16 start at −center · Σ q and end right
//   pairs            wider codes whose products fit 16 bits two by two: each pair of them is widened to 32
//   planes           codes of eight bits: a sum of the low nibbles, one of the high ones. (Signs moved to the activations, |c|
//                    times ±q, would have to leave 16 bits after every product; vpsignb shares two pipes with it on Zen 4.)
#include "kernels/avx2/prompt_int8.h"

#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

enum class Sums { plain, shifted, centred, centred_and_shifted, pairs, planes };

constexpr int kLargestQ = 127, kLargestSum = 32767;

template <Sums form, bool two_scales, bool has_minimum>
struct MaddubsForm {
  static constexpr bool kTwoScales = two_scales, kMinimum = has_minimum,
                        kCentred = form == Sums::centred || form == Sums::centred_and_shifted,
                        kShifted = form != Sums::plain && form != Sums::centred;
  static constexpr int kQuads = two_scales ? kInt8Quads / 2 : kInt8Quads;

  enum class Codes { whole, low, high };  // nibbles

  // Four columns; the first ones may be where the sums begin.
  template <Codes codes, bool begins, int R>
  LIULI_INLINE void add_quad(const int8_t* a, const int8_t* b, __m256i (&acc)[R][2]) {
    __m256i u[2] = {EightLanes::load(b), EightLanes::load(b + 32)};
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
      if constexpr (codes == Codes::high) u[half] = EightLanes::shift<4>(u[half]);
      if constexpr (codes != Codes::whole) u[half] = EightLanes::band(u[half], EightLanes::bytes(15));
    }
#pragma GCC unroll 6
    for (int r = 0; r < R; r++) {
      const __m256i q = word_of_row(a, r);
#pragma GCC unroll 2
      for (int half = 0; half < 2; half++) {
        __m256i sum = _mm256_maddubs_epi16(u[half], q);
        if constexpr (form == Sums::pairs) sum = _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
        if constexpr (begins)
          acc[r][half] = sum;
        else
          form == Sums::pairs ? add_words(acc[r][half], sum) : add_pairs(acc[r][half], sum);
      }
    }
  }

  template <Codes codes, int R>
  LIULI_INLINE void add_quads(const int8_t* a, const int8_t* b, __m256i (&acc)[R][2]) {
    if constexpr (!kCentred) add_quad<codes, true>(a, b, acc);
#pragma GCC unroll 1
    for (int i = !kCentred; i < kQuads; i++)
      add_quad<codes, false>(a + i * kInt8Line, b + i * kInt8Line, acc);
  }

  template <int part, int R>
  LIULI_INLINE void start(const int8_t* a, int center, __m256i (&acc)[R][2]) {
    const __m256i minus_center = _mm256_set1_epi16(static_cast<int16_t>(-center));
    const int8_t* pairs = a + kInt8RowPairs;
#pragma GCC unroll 6
    for (int r = 0; r < R; r++) {
      __m256i sum = word_of_row(pairs + part * kInt8Line, r);
      if constexpr (!two_scales) sum = _mm256_add_epi16(sum, word_of_row(pairs + kInt8Line, r));
      acc[r][0] = acc[r][1] = _mm256_mullo_epi16(sum, minus_center);
    }
  }

  template <int R>
  LIULI_INLINE void widen(int factor, __m256i (&acc)[R][2]) {
    const __m256i factors = _mm256_set1_epi16(static_cast<int16_t>(factor));
#pragma GCC unroll 6
    for (int r = 0; r < R; r++)
#pragma GCC unroll 2
      for (int half = 0; half < 2; half++) acc[r][half] = _mm256_madd_epi16(acc[r][half], factors);
  }

  template <int part, int R>
  LIULI_INLINE void sums(const int8_t* a, const int8_t* b, const CodeValues& values, __m256i (&acc)[R][2]) {
    const int8_t *a_part = a + part * kQuads * kInt8Line, *b_part = b + part * kQuads * kInt8Line;
    if constexpr (form == Sums::planes) {
      alignas(32) int32_t high[R][kPanelRows];
      add_quads<Codes::high>(a_part, b_part, acc);
      widen(16, acc);
#pragma GCC unroll 6
      for (int r = 0; r < R; r++)
        EightLanes::store(high[r], acc[r][0]), EightLanes::store(high[r] + 8, acc[r][1]);
      add_quads<Codes::low>(a_part, b_part, acc);
      widen(1, acc);
#pragma GCC unroll 6
      for (int r = 0; r < R; r++)
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++)
          acc[r][half] = EightLanes::add(acc[r][half], EightLanes::load(high[r] + 8 * half));
    } else {
      if constexpr (kCentred) start<part>(a, values.center, acc);
      add_quads<Codes::whole>(a_part, b_part, acc);
      if constexpr (form != Sums::pairs) widen(1, acc);
    }
  }
};

struct Maddubs {
  LIULI_INLINE __m256i stored(__m256i q) { return q; }

  static int range(const WeightKernels& w) { return w.code_most - w.code_least; }
  static int center(const WeightKernels& w) { return (range(w) + 1) / 2; }

  // One pair per addition: of 8 or 16 of them.
  static Sums form(const WeightKernels& w) {
    const int pairs = w.two_scales ? kInt8Block / 4 : kInt8Block / 2, fit = kLargestSum / (pairs * kLargestQ);
    if (range(w) <= fit) return w.code_least == 0 ? Sums::plain : Sums::shifted;
    if (range(w) > 2 * fit) return range(w) <= kLargestSum / (2 * kLargestQ) ? Sums::pairs : Sums::planes;
    return w.code_least + center(w) == 0 ? Sums::centred : Sums::centred_and_shifted;
  }

  static CodeValues values(const WeightKernels& w) {
    const Sums f = form(w);
    const bool centred = f == Sums::centred || f == Sums::centred_and_shifted;
    const int taken = centred ? center(w) : 0;
    return {taken, static_cast<float>(w.code_least + taken)};
  }

  // Codes without their least value.
  static void prepare(const WeightKernels& w, int8_t* b, int blocks) {
    if (w.code_least == 0) return;
    for (; blocks > 0; blocks--, b += kInt8Bytes)
      for (int i = 0; i < kInt8Quads * kInt8Line; i += 32)
        EightLanes::store(
            b + i, EightLanes::subtract_bytes(EightLanes::load(b + i), EightLanes::bytes(w.code_least)));
  }

  template <int R>
  static AddBlocks find(const WeightKernels& w) {
    return w.two_scales ? find<R, true>(w) : find<R, false>(w);
  }
  // No stored type has a minimum and codes that are shifted or wide: those share one form.
  template <int R, bool two_scales>
  static AddBlocks find(const WeightKernels& w) {
    const Sums f = form(w);
    if (w.has_minimum)
      return f == Sums::plain ? &add_blocks<R, MaddubsForm<Sums::plain, two_scales, true>>
             : f == Sums::pairs || f == Sums::planes
                 ? &add_blocks<R, MaddubsForm<Sums::planes, two_scales, true>>
                 : &add_blocks<R, MaddubsForm<Sums::centred_and_shifted, two_scales, true>>;
    return f == Sums::planes    ? &add_blocks<R, MaddubsForm<Sums::planes, two_scales, false>>
           : f == Sums::pairs   ? &add_blocks<R, MaddubsForm<Sums::pairs, two_scales, false>>
           : f == Sums::centred ? &add_blocks<R, MaddubsForm<Sums::centred, two_scales, false>>
           : f == Sums::centred_and_shifted
               ? &add_blocks<R, MaddubsForm<Sums::centred_and_shifted, two_scales, false>>
               : &add_blocks<R, MaddubsForm<Sums::shifted, two_scales, false>>;
  }
};

}  // namespace

const PromptKernels* prompt_int8_avx2() noexcept {
  static constexpr PromptKernels kernels =
      BlockedPrompt<Int8Engine<Maddubs>>::table("8-bit blocks of 32, AVX2");
  return &kernels;
}

}  // namespace liuli::kernels
