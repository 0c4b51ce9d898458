// Decode class with vpmaddwd: codes widened to 16 bits × the 16-bit integers of x16 activations.
#include "kernels/avx2/vector.h"
#include "kernels/granule_decode.h"

namespace liuli::kernels {

void set_decode_avx2(WeightTable& table) noexcept { for_each_granule_type(SetDecode{table}); }

}  // namespace liuli::kernels
