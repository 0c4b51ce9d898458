// Positions into pages of codes and back; the same on every level.
#include "kernels/kv_codes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/half.h"
#include "kernels/kv_pages.h"

namespace liuli::kernels {
namespace {

struct Group {
  uint16_t scale;  // f16
  int8_t codes[kCodeGroup];
};

// (Loops of 32 over plain arrays, whole numbers by adding 1.5 · 2^23: the compiler makes vectors of them. A prompt writes
// tens of thousands of groups.)
struct Numbers {
  float x[kCodeGroup];

  Numbers(const float* from, int n) {
    for (int i = 0; i < kCodeGroup; i++) x[i] = i < n ? from[i] : 0.0f;
  }
  // The value of largest magnitude (the positive one of two); NaN if there is one.
  float extreme() const {
    int32_t bits[kCodeGroup], top = 0, positive = 0;
    std::memcpy(bits, x, sizeof bits);
    for (int32_t b : bits) top = std::max(top, b & 0x7fffffff);
    for (int32_t b : bits) positive |= b == top;
    float largest;
    std::memcpy(&largest, &top, sizeof top);
    return positive != 0 ? largest : -largest;
  }
};

// x / step as codes. A NaN makes its whole group NaN, as it would stay visible in a 16-bit cache.
Group encode(const Numbers& numbers, float step, float low, float high) {
  Group g;
  g.scale = f32_to_f16(std::isnan(step) ? step : std::clamp(step, -65504.0f, 65504.0f));
  const float used = f16_to_f32(g.scale), inverse = used != 0.0f && !std::isnan(used) ? 1.0f / used : 0.0f;
  if (inverse == 0.0f) {
    std::memset(g.codes, 0, sizeof g.codes);
    return g;
  }
  constexpr float kWhole = 12582912.0f;
  for (int i = 0; i < kCodeGroup; i++) {
    const float x = numbers.x[i] * inverse;
    const float within = x < low ? low : (x > high ? high : x);
    g.codes[i] = static_cast<int8_t>(static_cast<int32_t>((within + kWhole) - kWhole));
  }
  return g;
}

// The tile, line and byte of a number; its group's scale.
struct Spot {
  size_t tile;
  int line, byte;
  size_t scale;
};
constexpr int kOrder[4] = {0, 2, 1, 3};  // of the four bytes of a key's dims (a dim's keys)

inline Spot key_spot(const CodeLayout& at, int slot, int d) {
  const size_t tile = static_cast<size_t>(slot / 16 * (at.key_dim / 32) + d / 32);
  return {tile, d % 32 / 4, slot % 16 * 4 + kOrder[d % 4], tile * 16 + static_cast<size_t>(slot % 16)};
}
inline Spot value_spot(int slot, int d) {
  return {static_cast<size_t>(d / 16 * 2 + slot / 32), slot % 32 / 4, d % 16 * 4 + kOrder[slot % 4],
          static_cast<size_t>(d / kCodeGroup * kPagePositions + slot)};
}

// Q8_0: step = max |x| / 127.
struct Q8 : Codes8 {
  static Group quantise(const Numbers& x) { return encode(x, std::fabs(x.extreme()) / 127.0f, -127, 127); }
  static int key(const uint8_t* tile, const Spot& at) { return tile[at.line * 64 + at.byte] - kOffset; }
  static int value(const uint8_t* tile, const Spot& at) { return key(tile, at); }
  static void put_key(uint8_t* tile, const Spot& at, int code) {
    tile[at.line * 64 + at.byte] = static_cast<uint8_t>(code + kOffset);
  }
  static void put_value(uint8_t* tile, const Spot& at, int code) { put_key(tile, at, code); }
};

// Q4_0: the value of largest magnitude becomes −8 steps.
struct Q4 : Codes4 {
  static Group quantise(const Numbers& x) { return encode(x, x.extreme() / -8.0f, -8, 7); }
  static int nibble(uint8_t byte, int upper) { return (upper != 0 ? byte >> 4 : byte & 15) - kOffset; }
  static void put(uint8_t& byte, int upper, int code) {
    const int n = code + kOffset;
    byte = static_cast<uint8_t>(upper != 0 ? (byte & 15) | n << 4 : (byte & 0xf0) | n);
  }
  static int key(const uint8_t* tile, const Spot& at) {
    return nibble(tile[at.line % 4 * 64 + at.byte], at.line / 4);
  }
  static int value(const uint8_t* tile, const Spot& at) {
    return nibble(tile[at.line * 32 + at.byte % 32], at.byte / 32);
  }
  static void put_key(uint8_t* tile, const Spot& at, int code) {
    put(tile[at.line % 4 * 64 + at.byte], at.line / 4, code);
  }
  static void put_value(uint8_t* tile, const Spot& at, int code) {
    put(tile[at.line * 32 + at.byte % 32], at.byte / 32, code);
  }
};

template <class Form>
void append_key(uint8_t* page, const CodeLayout& at, int slot, const float* k, int head_dim) {
  auto* key_scales = reinterpret_cast<uint16_t*>(page + at.key_scales());
  for (int d = 0; d < head_dim; d += kCodeGroup) {
    const Group g = Form::quantise({k + d, std::min(kCodeGroup, head_dim - d)});
    key_scales[key_spot(at, slot, d).scale] = g.scale;
    for (int i = 0; i < kCodeGroup; i++) {
      const Spot to = key_spot(at, slot, d + i);
      Form::put_key(page + to.tile * at.tile, to, g.codes[i]);
    }
  }
}

template <class Form>
void append_value(uint8_t* page, const CodeLayout& at, int slot, const float* v, int value_dim) {
  auto* value_scales = reinterpret_cast<uint16_t*>(page + at.value_scales());
  for (int d = 0; d < value_dim; d += kCodeGroup) {
    const Group g = Form::quantise({v + d, std::min(kCodeGroup, value_dim - d)});
    value_scales[value_spot(slot, d).scale] = g.scale;
    for (int i = 0; i < std::min(kCodeGroup, at.value_dim - d); i++) {
      const Spot to = value_spot(slot, d + i);
      Form::put_value(page + at.values() + to.tile * at.tile, to, g.codes[i]);
    }
  }
}

template <class Form>
void append(uint8_t* page, int slot, const float* k, const float* v, PageShape shape) {
  const CodeLayout at = code_layout(shape, Form::kTileBytes);
  append_key<Form>(page, at, slot, k, shape.head_dim);
  if (!shape.shared_values) append_value<Form>(page, at, slot, v, shape.value_dim);
}

float number(uint16_t scale, int code) { return f16_to_f32(scale) * static_cast<float>(code); }

template <class Form>
void read(const uint8_t* page, int slot, float* k, float* v, PageShape shape) {
  const CodeLayout at = code_layout(shape, Form::kTileBytes);
  const auto* key_scales = reinterpret_cast<const uint16_t*>(page + at.key_scales());
  for (int d = 0; d < shape.head_dim; d++) {
    const Spot of = key_spot(at, slot, d);
    k[d] = number(key_scales[of.scale], Form::key(page + of.tile * at.tile, of));
  }
  if (shape.shared_values) {
    std::copy_n(k, shape.value_dim, v);
    return;
  }
  const auto* value_scales = reinterpret_cast<const uint16_t*>(page + at.value_scales());
  for (int d = 0; d < shape.value_dim; d++) {
    const Spot of = value_spot(slot, d);
    v[d] = number(value_scales[of.scale], Form::value(page + at.values() + of.tile * at.tile, of));
  }
}

template <class Form>
size_t page_bytes(PageShape shape) {
  const CodeLayout at = code_layout(shape, Form::kTileBytes);
  return shape.shared_values ? at.values() : at.bytes();
}

}  // namespace

size_t q8_0_page_bytes(PageShape shape) noexcept { return page_bytes<Q8>(shape); }
void q8_0_page_append(uint8_t* page, int slot, const float* k, const float* v, PageShape shape) noexcept {
  append<Q8>(page, slot, k, v, shape);
}
void q8_0_page_read(const uint8_t* page, int slot, float* k, float* v, PageShape shape) noexcept {
  read<Q8>(page, slot, k, v, shape);
}

size_t q4_0_page_bytes(PageShape shape) noexcept { return page_bytes<Q4>(shape); }
void q4_0_page_append(uint8_t* page, int slot, const float* k, const float* v, PageShape shape) noexcept {
  append<Q4>(page, slot, k, v, shape);
}
void q4_0_page_read(const uint8_t* page, int slot, float* k, float* v, PageShape shape) noexcept {
  read<Q4>(page, slot, k, v, shape);
}

}  // namespace liuli::kernels
