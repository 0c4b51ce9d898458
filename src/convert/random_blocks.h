// Random weights, made directly in a stored type: encoding 8 billion numbers would take an hour, this takes the time of
// writing them.
#pragma once
#include <array>
#include <cstdint>

#include "core/dtype.h"
#include "core/rng.h"

namespace liuli {

/// Values of mean 0 and a given standard deviation in blocks of one type.
///
/// Plain types: sums of four uniform numbers, within 1 % of the normal density up to two standard deviations. Quantised
/// types: random codes (uniform), scales as real files have them (6-bit scales in their upper half, super-block scales
/// that vary by a quarter, minima that centre the codes), so that a kernel sees every code, and no rounding is luckier
/// than in a real file. What one block decodes to with scale 1 is measured by the type's own decoder.
class RandomBlocks {
 public:
  /// Types: F32 F16 BF16 and every quantised one. Errors: unsupported for the others.
  RandomBlocks(DType type, double deviation);

  /// The next `n` blocks; which numbers they are depends on the generator only.
  void fill(Rng& rng, uint8_t* blocks, int64_t n) const;

 private:
  static constexpr int kSteps = 16;  ///< different super-block scales

  void fill_plain(Rng& rng, uint8_t* values, int64_t n) const;
  void set_scale(uint8_t* block, uint64_t random) const;
  void prepare_scales(double scale);

  DType type_;
  double deviation_;
  std::array<uint16_t, 2 * kSteps> scales_{}, minima_{};  ///< f16; or indices of byte scales (MXFP4, NVFP4)
};

}  // namespace liuli
