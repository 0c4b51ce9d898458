// Codes for the 8-bit prompt product (int8_blocks.h), sixteen rows at a time.
#include "kernels/avx512/vector.h"
#include "kernels/granule_int8.h"

namespace liuli::kernels {

void set_expand_int8_avx512(WeightTable& table) noexcept {
  for_each_granule_type(SetExpandCodes{table});
  for_each_lattice_type(SetExpandCodes{table});
}

}  // namespace liuli::kernels
