// Shared values: a page keeps c once, as the first dims of its keys (latent attention). q · k reads the lines as they lie;
// p · v wants the same numbers by pairs of positions instead of pairs of dims. So a block's values are turned into scratch
// in the form that pages of values of their own have (kv_pages.h, kv_codes.h), once for all queries of a batch: the
// products do not differ, nor does a bit of them. Private, as attention_blocked.h: all in an anonymous namespace.
//
// Sixteen keys × sixteen dims are eight lines of a key tile and become eight lines of a value tile. Turning a page of 512
// dims moves 64 KiB within L2: 2–4 % of the instructions that its products with 64 queries take.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/kv_codes.h"

namespace liuli::kernels {
namespace {

using Words = uint16_t __attribute__((vector_size(16)));  // any ISA has registers of these
using Octets = uint8_t __attribute__((vector_size(16)));

template <class Vector>
inline Vector load_vector(const void* from) {
  Vector v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
template <class Vector>
inline void store_vector(void* to, Vector v) {
  __builtin_memcpy(to, &v, sizeof v);
}

/// Eight lines of [16 keys][2 dims] become eight of [16 dims][2 keys]: of each 2 × 2 numbers the middle ones change places.
inline void turn_bf16(const uint16_t* lines, uint16_t* to) {
  for (int pair = 0; pair < 8; pair += 2)   // of dims
    for (int four = 0; four < 4; four++) {  // keys
      const auto a = load_vector<Words>(lines + pair * 32 + four * 8),
                 b = load_vector<Words>(lines + (pair + 1) * 32 + four * 8);
      store_vector(to + four * 64 + pair * 4, __builtin_shufflevector(a, b, 0, 2, 1, 3, 8, 10, 9, 11));
      store_vector(to + four * 64 + 32 + pair * 4, __builtin_shufflevector(a, b, 4, 6, 5, 7, 12, 14, 13, 15));
    }
}

/// Rows of 16 numbers, one per dim, become rows of one per key. Interleaving rows i and i + 4 three times turns 8 × 8.
inline void turn_f16(const uint16_t* rows, uint16_t* to) {
  for (int dims = 0; dims < 16; dims += 8)
    for (int keys = 0; keys < 16; keys += 8) {
      Words v[8], mixed[8];
      for (int i = 0; i < 8; i++) v[i] = load_vector<Words>(rows + (dims + i) * 16 + keys);
      for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
          mixed[2 * i] = __builtin_shufflevector(v[i], v[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
          mixed[2 * i + 1] = __builtin_shufflevector(v[i], v[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
        for (int i = 0; i < 8; i++) v[i] = mixed[i];
      }
      for (int i = 0; i < 8; i++) store_vector(to + (keys + i) * 16 + dims, v[i]);
    }
}

/// Four keys' four codes, each four in the order 0 2 1 3, become four dims' of four keys.
inline Octets turn_codes(Octets v) {
  return __builtin_shufflevector(v, v, 0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15);
}

/// Four lines of codes of a key tile, [16 keys][4 dims], become a half of a value tile: four lines of [16 dims][4 keys].
inline void turn_half(Codes8, const uint8_t* tile, int half, uint8_t* to) {
  for (int dims = 0; dims < 4; dims++)
    for (int keys = 0; keys < 4; keys++)
      store_vector(to + keys * 64 + dims * 16,
                   turn_codes(load_vector<Octets>(tile + (4 * half + dims) * 64 + keys * 16)));
}
inline void turn_half(Codes4, const uint8_t* tile, int half, uint8_t* to) {
  for (int dims = 0; dims < 2; dims++)  // share their bytes with those 8 dims on
    for (int keys = 0; keys < 4; keys++) {
      const auto a = load_vector<Octets>(tile + dims * 64 + keys * 16),
                 b = load_vector<Octets>(tile + (dims + 2) * 64 + keys * 16);
      const Octets both = half == 0 ? (a & 15) | (b << 4) : (a >> 4) | (b & 0xf0);
      store_vector(to + keys * 32 + dims * 16, turn_codes(both));
    }
}

/// turn(lines of 16 keys × 16 dims, where they go) for all values of a 16-bit page.
template <class Turn>
inline void turn_page(const uint16_t* keys, PageShape shape, uint16_t* values, Turn turn) {
  constexpr int kHalf = kTileCodes / 2;
  const int groups = (shape.head_dim + 31) / 32;
  for (int tile = 0; tile < 4; tile++)
    for (int d = 0; d < (shape.value_dim + 15) / 16; d++)
      turn(keys + (tile * groups + d / 2) * kTileCodes + d % 2 * kHalf,
           values + (2 * d + tile / 2) * kTileCodes + tile % 2 * kHalf);
}

/// The same of a page of codes: its values, then their scales.
template <class Codes>
inline void turn_code_page(const uint8_t* page, PageShape shape, uint8_t* values) {
  const CodeLayout at = code_layout(shape, Codes::kTileBytes);
  const size_t half = at.tile / 2, groups = static_cast<size_t>(at.key_dim) / 32;
  uint8_t* scales = values + (at.value_scales() - at.values());
  for (size_t tile = 0; tile < 4; tile++) {
    for (size_t d = 0; d < at.value_tiles() / 2; d++)
      turn_half(Codes{}, page + (tile * groups + d / 2) * at.tile, static_cast<int>(d % 2),
                values + (2 * d + tile / 2) * at.tile + tile % 2 * half);
    for (size_t group = 0; group < at.value_groups(); group++)
      __builtin_memcpy(scales + group * 128 + tile * 32,
                       page + at.key_scales() + (tile * groups + group) * 32, 32);
  }
}

}  // namespace
}  // namespace liuli::kernels
