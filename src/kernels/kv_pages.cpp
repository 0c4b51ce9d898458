#include "kernels/kv_pages.h"

#include <algorithm>

#include "core/half.h"

namespace liuli::kernels {
namespace {

constexpr int kKeyDims = 32, kValueDims = 16;  // dims a row of tiles covers
constexpr int kTile = 512, kLine = 32;         // 16-bit values

size_t padded(int n, int multiple) { return static_cast<size_t>((n + multiple - 1) / multiple * multiple); }
size_t key_values(int head_dim) { return kPagePositions * padded(head_dim, kKeyDims); }

// Where member `part` (0, 1) of pair `of` lies in a line, and a number's 16 bits.
struct Bf16 {
  static size_t in_line(int of, int part) { return static_cast<size_t>(of * 2 + part); }
  static uint16_t narrow(float x) { return f32_to_bf16(x); }
  static float widen(uint16_t bits) { return bf16_to_f32(bits); }
};

struct F16 {
  static size_t in_line(int of, int part) { return static_cast<size_t>(part * 16 + of); }
  // (A NaN passes through std::clamp.)
  static uint16_t narrow(float x) { return f32_to_f16(std::clamp(x, -65504.0f, 65504.0f)); }
  static float widen(uint16_t bits) { return f16_to_f32(bits); }
};

template <class Form>
size_t key_index(int slot, int d, int head_dim) {
  const size_t tile = slot / 16 * padded(head_dim, kKeyDims) / kKeyDims + d / kKeyDims;
  return tile * kTile + d % kKeyDims / 2 * kLine + Form::in_line(slot % 16, d % 2);
}

template <class Form>
size_t value_index(int slot, int d) {
  const size_t tile = d / kValueDims * 2 + slot / 32;
  return tile * kTile + slot % 32 / 2 * kLine + Form::in_line(d % kValueDims, slot % 2);
}

template <class Form>
void append(uint8_t* page, int slot, const float* k, const float* v, PageShape shape) {
  auto* keys = reinterpret_cast<uint16_t*>(page);
  for (int d = 0; d < shape.head_dim; d++)
    keys[key_index<Form>(slot, d, shape.head_dim)] = Form::narrow(k[d]);
  if (shape.shared_values) return;
  uint16_t* values = keys + key_values(shape.head_dim);
  for (int d = 0; d < shape.value_dim; d++) values[value_index<Form>(slot, d)] = Form::narrow(v[d]);
}

template <class Form>
void read(const uint8_t* page, int slot, float* k, float* v, PageShape shape) {
  const auto* keys = reinterpret_cast<const uint16_t*>(page);
  for (int d = 0; d < shape.head_dim; d++) k[d] = Form::widen(keys[key_index<Form>(slot, d, shape.head_dim)]);
  if (shape.shared_values) {
    std::copy_n(k, shape.value_dim, v);
    return;
  }
  const uint16_t* values = keys + key_values(shape.head_dim);
  for (int d = 0; d < shape.value_dim; d++) v[d] = Form::widen(values[value_index<Form>(slot, d)]);
}

}  // namespace

size_t kv_page_bytes(PageShape shape) noexcept {
  const size_t values = shape.shared_values ? 0 : kPagePositions * padded(shape.value_dim, kValueDims);
  return (key_values(shape.head_dim) + values) * sizeof(uint16_t);
}

void bf16_page_append(uint8_t* page, int slot, const float* k, const float* v, PageShape shape) noexcept {
  append<Bf16>(page, slot, k, v, shape);
}
void f16_page_append(uint8_t* page, int slot, const float* k, const float* v, PageShape shape) noexcept {
  append<F16>(page, slot, k, v, shape);
}

void bf16_page_read(const uint8_t* page, int slot, float* k, float* v, PageShape shape) noexcept {
  read<Bf16>(page, slot, k, v, shape);
}
void f16_page_read(const uint8_t* page, int slot, float* k, float* v, PageShape shape) noexcept {
  read<F16>(page, slot, k, v, shape);
}

}  // namespace liuli::kernels
