// Decode class of IQ1, IQ2 and IQ3: points to codes in L1, then the integer products of the other types.
#include "kernels/avxvnni/vnni.h"
//
#include "kernels/avx2/vector.h"
#include "kernels/granule_decode.h"

namespace liuli::kernels {

void LIULI_VNNI_NAME(set_lattice)(WeightTable& table) noexcept { for_each_lattice_type(SetDecode{table}); }

}  // namespace liuli::kernels
