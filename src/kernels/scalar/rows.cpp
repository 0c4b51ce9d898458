// The row kernels of the scalar level: float arithmetic, double sums.
#include "kernels/isa_tables.h"
#include "kernels/scalar/row_loops.h"

namespace liuli::kernels {

const RowKernels* rows_scalar() noexcept { return &RowLoops<float>::kTable; }

}  // namespace liuli::kernels
