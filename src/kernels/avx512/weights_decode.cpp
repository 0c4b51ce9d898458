// Decode class with VNNI: u8 codes × the two i8 planes of x16 activations.
#include "kernels/avx512/vector.h"
#include "kernels/granule_decode.h"

namespace liuli::kernels {

void set_decode_avx512(WeightTable& table) noexcept { for_each_granule_type(SetDecode{table}); }

}  // namespace liuli::kernels
