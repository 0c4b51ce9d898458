// Decode class with VNNI in 256-bit registers: u8 codes × the two i8 planes of x16 activations.
#include "kernels/avxvnni/vnni.h"
//
#include "kernels/avx2/vector.h"
#include "kernels/granule_decode.h"

namespace liuli::kernels {

void LIULI_VNNI_NAME(set_decode)(WeightTable& table) noexcept { for_each_granule_type(SetDecode{table}); }

}  // namespace liuli::kernels
