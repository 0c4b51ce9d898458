#include "kernels/bf16_pages.h"

#include <bit>

namespace liuli::kernels {
namespace {

constexpr int kKeyDims = 32, kValueDims = 16;  // dims a row of tiles covers
constexpr int kTile = 512;                     // bf16 values in a tile

size_t padded(int n, int multiple) { return static_cast<size_t>((n + multiple - 1) / multiple * multiple); }
size_t key_values(int head_dim) { return kPagePositions * padded(head_dim, kKeyDims); }

size_t key_index(int slot, int d, int head_dim) {
  const size_t tile = slot / 16 * padded(head_dim, kKeyDims) / kKeyDims + d / kKeyDims;
  return tile * kTile + d % kKeyDims / 2 * 32 + slot % 16 * 2 + d % 2;
}

size_t value_index(int slot, int d) {
  const size_t tile = d / kValueDims * 2 + slot / 32;
  return tile * kTile + slot % 32 / 2 * 32 + d % kValueDims * 2 + slot % 2;
}

// Round to nearest even; a NaN stays a NaN (its top mantissa bit is set, so that rounding cannot make it
// infinite).
uint16_t to_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace

size_t bf16_page_bytes(int head_dim, int value_dim) noexcept {
  return (key_values(head_dim) + kPagePositions * padded(value_dim, kValueDims)) * sizeof(uint16_t);
}

void bf16_page_append(uint8_t* page, int slot, const float* k, const float* v, int head_dim,
                      int value_dim) noexcept {
  auto* keys = reinterpret_cast<uint16_t*>(page);
  uint16_t* values = keys + key_values(head_dim);
  for (int d = 0; d < head_dim; d++) keys[key_index(slot, d, head_dim)] = to_bf16(k[d]);
  for (int d = 0; d < value_dim; d++) values[value_index(slot, d)] = to_bf16(v[d]);
}

void bf16_page_read(const uint8_t* page, int slot, float* k, float* v, int head_dim, int value_dim) noexcept {
  const auto* keys = reinterpret_cast<const uint16_t*>(page);
  const uint16_t* values = keys + key_values(head_dim);
  for (int d = 0; d < head_dim; d++) k[d] = from_bf16(keys[key_index(slot, d, head_dim)]);
  for (int d = 0; d < value_dim; d++) v[d] = from_bf16(values[value_index(slot, d)]);
}

}  // namespace liuli::kernels
