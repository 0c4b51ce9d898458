// Tables of x86 files that are not written yet; each line goes away with the file that defines it.
#include "kernels/isa_tables.h"

namespace liuli::kernels {

const PromptKernels* prompt_amx() noexcept { return nullptr; }

const AttentionKernels* attention_amx() noexcept { return nullptr; }

}  // namespace liuli::kernels
