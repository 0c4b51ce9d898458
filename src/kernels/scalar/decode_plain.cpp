// Types stored one element after another. Integers and F64 round to the nearest f32.
#include "kernels/scalar/decode_blocks.h"

namespace liuli::kernels {
namespace {

template <class T>
void cast_elements(const uint8_t* __restrict row, int64_t n, float* __restrict out) {
  for (int64_t i = 0; i < n; i++) out[i] = static_cast<float>(load<T>(row + i * sizeof(T)));
}

}  // namespace

void decode_f32(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  if (n > 0) std::memcpy(out, row, static_cast<size_t>(n) * sizeof(float));
}

void decode_f16(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (int64_t i = 0; i < n; i++) out[i] = load_f16(row + 2 * i);
}

void decode_bf16(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  for (int64_t i = 0; i < n; i++) out[i] = bf16_to_f32(load<uint16_t>(row + 2 * i));
}

void decode_f64(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  cast_elements<double>(row, n, out);
}
void decode_i8(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  cast_elements<int8_t>(row, n, out);
}
void decode_i16(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  cast_elements<int16_t>(row, n, out);
}
void decode_i32(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  cast_elements<int32_t>(row, n, out);
}
void decode_i64(const uint8_t* __restrict row, int64_t n, float* __restrict out) noexcept {
  cast_elements<int64_t>(row, n, out);
}

}  // namespace liuli::kernels
