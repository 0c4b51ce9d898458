// FP8 weights as DeepSeek publishes them: E4M3 codes and an f32 factor per 128 columns.
#include <array>

#include "core/fp8.h"
#include "kernels/scalar/decode_blocks.h"

namespace liuli::kernels {
namespace {

constexpr std::array<float, 256> make_values() {
  std::array<float, 256> values{};
  for (size_t code = 0; code < values.size(); code++) values[code] = e4m3_to_f32(static_cast<uint8_t>(code));
  return values;
}
constexpr std::array<float, 256> kValues = make_values();

}  // namespace

/// [scale f32][128 codes]  y = value(code) · scale, one rounding
void decode_f8_e4m3_b128(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (; n > 0; n -= 128, row += 132, out += 128) {
    const float scale = load<float>(row);
    for (int i = 0; i < 128; i++) out[i] = kValues[row[4 + i]] * scale;
  }
}

}  // namespace liuli::kernels
