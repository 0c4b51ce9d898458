// What other architectures than x86 have: Arm's dot product.
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "kernels/cpu_features.h"

namespace liuli::kernels {

const CpuFeatures& cpu_features() noexcept {
  static const CpuFeatures features = [] {
    CpuFeatures f;
#if defined(__aarch64__) && defined(__linux__)
    f.neon = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#endif
    return f;
  }();
  return features;
}

}  // namespace liuli::kernels
