// All granule types that have codes of their own (granule_lattices.h has those that look points up).
#pragma once
#include "kernels/granule_fp4.h"
#include "kernels/granule_ternary.h"
#include "kernels/granule_types.h"

namespace liuli::kernels {
namespace {

/// f(T{}) for every granule type.
template <class F>
LIULI_INLINE void for_each_granule_type(F&& f) {
  f(Q40{}), f(Q41{}), f(Q50{}), f(Q51{}), f(Q80{}), f(IQ4NL{});
  f(Q2K{}), f(Q3K{}), f(Q4K{}), f(Q5K{}), f(Q6K{}), f(IQ4XS{});
  f(MXFP4{}), f(NVFP4{}), f(TQ10{}), f(TQ20{});
}

}  // namespace
}  // namespace liuli::kernels
