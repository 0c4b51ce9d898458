// f32 FMA over decoded weights (the f32 class, and the decode class of types without integer codes), bf16 tiles,
// and 16-bit fixed point.
#include "kernels/avx512/vector.h"
#include "kernels/granule_fixed16.h"
#include "kernels/weight_parts.h"

namespace liuli::kernels {

void set_float_avx512(WeightTable& table) noexcept {
  set_float_kernels(table);
  set_fixed16_kernels(table);
}

}  // namespace liuli::kernels
