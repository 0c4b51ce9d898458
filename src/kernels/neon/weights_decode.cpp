// Decode class with sdot: signed codes × the two i8 planes of x16 activations.
#include "kernels/neon/vector.h"

#include "kernels/granule_decode.h"
#include "kernels/weight_parts.h"

namespace liuli::kernels {

void set_decode_neon(WeightTable& table) noexcept {
  const auto set = [&](auto t) {
    using T = decltype(t);
    WeightKernels& w = table.by_type[static_cast<int>(T::kType)];
    w.integer_decode = true;
    w.decode_x16 = decode_x16<T>;
  };
  for_each_granule_type(set);
}

}  // namespace liuli::kernels
