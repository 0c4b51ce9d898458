// The prompt product of 16-bit fixed point by vpdpwssd in 256-bit registers.
#include "kernels/avxvnni/vnni.h"
//
#include "kernels/avx2/prompt_fixed16.h"
#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

struct DotWords {
  LIULI_INLINE void add(__m256i& sum, __m256i w, __m256i q) { sum = dot_words(sum, w, q); }
};

}  // namespace

const PromptKernels* LIULI_VNNI_NAME(prompt_fixed16)() noexcept {
  static constexpr PromptKernels kernels =
      BlockedPrompt<Fixed16Engine<DotWords>>::table("16-bit fixed point, AVX-VNNI");
  return &kernels;
}

}  // namespace liuli::kernels
