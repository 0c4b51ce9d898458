// The weight table of the NEON level.
#include "kernels/weight_level.h"

namespace liuli::kernels {

const WeightTable* weights_neon() noexcept {
  static const WeightLevel level("sdot", set_decode_neon, set_lattice_neon, set_float_neon);
  return level.table();
}

}  // namespace liuli::kernels
