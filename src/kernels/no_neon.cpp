// Stands in for neon/ on other architectures: every table absent.
#include "kernels/isa_tables.h"
#include "kernels/peaks.h"

namespace liuli::kernels {

const WeightTable* weights_neon() noexcept { return nullptr; }
const PromptKernels* prompt_neon() noexcept { return nullptr; }
const AttentionKernels* attention_neon() noexcept { return nullptr; }
const AttentionKernels* attention_f16_neon() noexcept { return nullptr; }
CodeAttention attention_codes_neon() noexcept { return {}; }
PeakTable peaks_neon() noexcept { return {}; }

}  // namespace liuli::kernels
