#include "core/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace liuli {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The definition, in double precision: (−1)^s · 2^(e − 15) · (1 + m / 1024), or 2^(−14) · m / 1024.
float f16_by_definition(uint16_t h) {
  const int sign = h >> 15, e = (h >> 10) & 31, m = h & 1023;
  double value = e == 0 ? std::ldexp(m, -24) : std::ldexp(1024 + m, e - 25);
  if (e == 31) value = m == 0 ? kInfinity : std::nan("");
  return static_cast<float>(sign != 0 ? -value : value);
}

TEST(Half, F16ToF32AgreesWithTheDefinitionForAllValues) {
  for (uint32_t h = 0; h < 65536; h++) {
    const float expected = f16_by_definition(static_cast<uint16_t>(h)),
                got = f16_to_f32(static_cast<uint16_t>(h));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << h;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(expected)) << h;
    }
  }
}

TEST(Half, EveryF16AndBf16SurvivesTheWayThroughF32) {
  for (uint32_t h = 0; h < 65536; h++) {
    const auto half = static_cast<uint16_t>(h);
    if (!std::isnan(f16_to_f32(half))) {
      ASSERT_EQ(f32_to_f16(f16_to_f32(half)), half);
    }
    if (!std::isnan(bf16_to_f32(half))) {
      ASSERT_EQ(f32_to_bf16(bf16_to_f32(half)), half);
    }
  }
}

/// Between each pair of neighbours: the middle goes to the even one, a hair to either side to the nearer one.
template <class ToF32, class FromF32>
void check_rounding(uint16_t last_finite, ToF32 to_f32, FromF32 from_f32) {
  for (uint32_t h = 0; h < last_finite; h++) {
    const float low = to_f32(static_cast<uint16_t>(h)), high = to_f32(static_cast<uint16_t>(h + 1));
    const auto middle = static_cast<float>((static_cast<double>(low) + static_cast<double>(high)) / 2);
    const uint32_t even = h + (h & 1);
    ASSERT_EQ(from_f32(middle), even) << h;
    ASSERT_EQ(from_f32(-middle), even | 0x8000u) << h;
    ASSERT_EQ(from_f32(std::nextafterf(middle, 0.0f)), h);
    ASSERT_EQ(from_f32(std::nextafterf(middle, kInfinity)), h + 1);
  }
}

TEST(Half, F32ToF16RoundsToNearestEvenSubnormalsIncluded) { check_rounding(0x7BFF, f16_to_f32, f32_to_f16); }

TEST(Half, F32ToBf16RoundsToNearestEven) { check_rounding(0x7F7F, bf16_to_f32, f32_to_bf16); }

TEST(Half, LargeValuesBecomeInfinityAndSmallOnesZero) {
  EXPECT_EQ(f32_to_f16(65519.99f), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7C00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xFC00);
  EXPECT_EQ(f32_to_f16(kInfinity), 0x7C00);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0x0000);
  EXPECT_EQ(f32_to_f16(-1e-30f), 0x8000);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(f32_to_bf16(-kInfinity), 0xFF80);
}

TEST(Half, NanStaysNanAndKeepsItsSign) {
  for (uint32_t bits : {0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu, 0xFF800001u, 0xFFFFFFFFu}) {
    const auto value = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value)))) << bits;
    EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value)))) << bits;
    EXPECT_EQ(f32_to_f16(value) >> 15, bits >> 31);
    EXPECT_EQ(f32_to_bf16(value) >> 15, bits >> 31);
  }
}

}  // namespace
}  // namespace liuli
