// The prompt product of 16-bit fixed point by vpmaddwd: the scalar level's bits.
#include "kernels/avx2/prompt_fixed16.h"

#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

struct Madd {
  // GCC lowers the intrinsic of the addition to its own, makes trees of chains of them and spills.
  LIULI_INLINE void add(__m256i& sum, __m256i w, __m256i q) {
    asm("vpaddd %1, %0, %0" : "+x"(sum) : "x"(_mm256_madd_epi16(w, q)));
  }
};

}  // namespace

const PromptKernels* prompt_fixed16_avx2() noexcept {
  static constexpr PromptKernels kernels =
      BlockedPrompt<Fixed16Engine<Madd>>::table("16-bit fixed point, AVX2");
  return &kernels;
}

}  // namespace liuli::kernels
