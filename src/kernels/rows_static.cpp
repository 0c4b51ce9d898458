// Not x86: one copy of rowwise.cpp for the compiler's best target (NEON on aarch64), used by the only level
// there is.
#include "hwy/highway.h"
#include "kernels/isa_tables.h"

namespace liuli::kernels {

namespace HWY_NAMESPACE {
const RowKernels* row_table() noexcept;
}

const RowKernels* rows_highway(Isa isa) noexcept {
  return isa == Isa::scalar ? HWY_NAMESPACE::row_table() : nullptr;
}

}  // namespace liuli::kernels
