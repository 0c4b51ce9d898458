// Decode class of IQ1, IQ2 and IQ3: points to codes in L1, then the integer products of the other types.
#include "kernels/neon/vector.h"

#include "kernels/granule_decode.h"
#include "kernels/weight_parts.h"

namespace liuli::kernels {

void set_lattice_neon(WeightTable& table) noexcept {
  for_each_lattice_type([&](auto t) {
    using T = decltype(t);
    WeightKernels& w = table.by_type[static_cast<int>(T::kType)];
    w.integer_decode = true;
    w.decode_x16 = decode_x16<T>;
  });
}

}  // namespace liuli::kernels
