// The prompt product of 8-bit blocks by vpdpbusd in 256-bit registers: unsigned activations (q + 128) times signed codes, four
// columns at a time into 32-bit sums that start at −128 · Σ c, whatever the codes' width.
#include "kernels/avxvnni/vnni.h"
//
#include "kernels/avx2/prompt_int8.h"
#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

template <bool two_scales, bool has_minimum>
struct VnniForm {
  static constexpr bool kTwoScales = two_scales, kMinimum = has_minimum, kShifted = false;
  static constexpr int kQuads = two_scales ? kInt8Quads / 2 : kInt8Quads;

  template <int part, int R>
  LIULI_INLINE void sums(const int8_t* a, const int8_t* b, const CodeValues&, __m256i (&acc)[R][2]) {
    const int8_t* starts = b + kInt8Starts + part * kInt8Line;
#pragma GCC unroll 6
    for (int r = 0; r < R; r++)
#pragma GCC unroll 2
      for (int half = 0; half < 2; half++) acc[r][half] = EightLanes::load(starts + 32 * half);
#pragma GCC unroll 1
    for (int i = part * kQuads; i < part * kQuads + kQuads; i++) {
      const __m256i w[2] = {EightLanes::load(b + i * kInt8Line), EightLanes::load(b + i * kInt8Line + 32)};
#pragma GCC unroll 6
      for (int r = 0; r < R; r++) {
        const __m256i q = word_of_row(a + i * kInt8Line, r);
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) acc[r][half] = dot_bytes(acc[r][half], q, w[half]);
      }
    }
  }
};

struct Vnni {
  LIULI_INLINE __m256i stored(__m256i q) { return EightLanes::bxor(q, EightLanes::bytes(128)); }
  static void prepare(const WeightKernels&, int8_t*, int) {}
  static CodeValues values(const WeightKernels&) { return {}; }
  template <int R>
  static AddBlocks find(const WeightKernels& w) {
    if (w.two_scales)
      return w.has_minimum ? &add_blocks<R, VnniForm<true, true>> : &add_blocks<R, VnniForm<true, false>>;
    return w.has_minimum ? &add_blocks<R, VnniForm<false, true>> : &add_blocks<R, VnniForm<false, false>>;
  }
};

}  // namespace

const PromptKernels* LIULI_VNNI_NAME(prompt_int8)() noexcept {
  static constexpr PromptKernels kernels =
      BlockedPrompt<Int8Engine<Vnni>>::table("8-bit blocks of 32, AVX-VNNI");
  return &kernels;
}

}  // namespace liuli::kernels
