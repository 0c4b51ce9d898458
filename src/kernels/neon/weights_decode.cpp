// Decode class with sdot: signed codes × the two i8 planes of x16 activations.
#include "kernels/neon/vector.h"

#include "kernels/granule_decode.h"

namespace liuli::kernels {

void set_decode_neon(WeightTable& table) noexcept { for_each_granule_type(SetDecode{table}); }

}  // namespace liuli::kernels
