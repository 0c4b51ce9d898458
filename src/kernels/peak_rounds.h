// The loop that every peak is measured with. Included by ISA files only.
#pragma once
#include <cstdint>

namespace liuli::kernels {
namespace {

/// sum = step(sum, a, b) for kSums registers side by side, in every round. Isa::hide(register) makes the compiler forget what
/// it knows of a value.
template <class Isa, int kSums, class Sum, class Operand, class Step>
inline __attribute__((always_inline)) void run_rounds(int64_t rounds, Sum zero, Operand a, Operand b,
                                                      Step step) {
  Sum sums[kSums];
  for (Sum& sum : sums) {
    sum = zero;
    Isa::hide(sum);  // equal sums would become one
  }
  for (int64_t i = 0; i < rounds; i++) {
    Isa::hide(a), Isa::hide(b);  // so that no round can be computed ahead
    for (Sum& sum : sums) sum = step(sum, a, b);
  }
  for (Sum& sum : sums) Isa::hide(sum);
}

}  // namespace
}  // namespace liuli::kernels
