// f32 FMA over decoded weights (the f32 class, and the decode class of types without integer codes), and bf16
// tiles.
#include "kernels/neon/vector.h"

#include "kernels/granule_float.h"
#include "kernels/weight_parts.h"

namespace liuli::kernels {

void set_float_neon(WeightTable& table) noexcept { set_float_kernels(table); }

}  // namespace liuli::kernels
