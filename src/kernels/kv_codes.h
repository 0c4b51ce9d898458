// Pages of 8- and 4-bit codes, and how they become bf16 pages again. Private, as attention_blocked.h: all in an anonymous
// namespace.
//
//   keys     [4 key tiles][padded head_dim / 32] tiles of codes; as many times 16 f16 scales, one per key
//   values   [padded value_dim / 16][2] tiles of codes;          [padded value_dim / 32][64] f16 scales, one per key
//            (none where values are shared: kv_shared.h)
//
// A tile has the 512 numbers of a bf16 page's tile (kv_pages.h), as code + kOffset: 8 lines of 16 keys × 4 dims (or
// 16 dims × 4 keys). The four bytes are in the order 0 2 1 3: masked or shifted to 16 bits they are the pairs (0, 1) and
// (2, 3), which 16-bit dot products and the lines of bf16 pages both want.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace liuli::kernels {
namespace {

constexpr int kCodeGroup = 32;   // dims that share a scale
constexpr int kTileCodes = 512;  // 16 lines of 32

/// Where the parts of a page lie; where its values would, if they are shared.
struct CodeLayout {
  int key_dim, value_dim;  // padded to 32 and 16
  size_t tile;             // bytes of 512 codes

  size_t key_tiles() const { return static_cast<size_t>(key_dim) / 32 * 4; }
  size_t value_tiles() const { return static_cast<size_t>(value_dim) / 16 * 2; }
  size_t value_groups() const { return (static_cast<size_t>(value_dim) + 31) / kCodeGroup; }
  size_t key_scales() const { return key_tiles() * tile; }
  size_t values() const { return key_scales() + key_tiles() * 16 * sizeof(uint16_t); }
  size_t value_scales() const { return values() + value_tiles() * tile; }
  size_t bytes() const { return value_scales() + value_groups() * kPagePositions * sizeof(uint16_t); }
};

inline CodeLayout code_layout(PageShape shape, size_t tile) {
  return {(shape.head_dim + 31) / 32 * 32, (shape.value_dim + 15) / 16 * 16, tile};
}

// The lines of a tile as pairs: line 2 l + h of the bf16 page from the bytes of parity h.
inline void pair_up(const uint8_t* tile, int offset, int8_t* codes) {
  for (int line = 0; line < 8; line++) {
    for (int i = 0; i < 32; i++) {
      codes[64 * line + i] = static_cast<int8_t>(tile[64 * line + 2 * i] - offset);
      codes[64 * line + 32 + i] = static_cast<int8_t>(tile[64 * line + 2 * i + 1] - offset);
    }
  }
}

/// Eight bits: −127 … 127.
struct Codes8 {
  static constexpr int kOffset = 128;
  static constexpr size_t kTileBytes = kTileCodes;
  static void key_tile(const uint8_t* tile, int8_t* codes) { pair_up(tile, kOffset, codes); }
  static void value_tile(const uint8_t* tile, int8_t* codes) { pair_up(tile, kOffset, codes); }
  template <class Lanes>
  static typename Lanes::Bytes key_line(const uint8_t* tile, int line) {
    return Lanes::load_bytes(tile + 64 * line);
  }
  template <class Lanes>
  static typename Lanes::Bytes value_line(const uint8_t* tile, int line) {
    return Lanes::load_bytes(tile + 64 * line);
  }
};

/// Four bits, −8 … 7. The two codes of a byte belong to one position, so that positions can be written side by side: of
/// keys those of lines l and l + 4; of values those of dims d and d + 8.
struct Codes4 {
  static constexpr int kOffset = 8;
  static constexpr size_t kTileBytes = kTileCodes / 2;
  static void key_tile(const uint8_t* tile, int8_t* codes) {
    uint8_t bytes[kTileCodes];
    for (int i = 0; i < kTileCodes / 2; i++) {
      bytes[i] = tile[i] & 15;
      bytes[kTileCodes / 2 + i] = tile[i] >> 4;
    }
    pair_up(bytes, kOffset, codes);
  }
  static void value_tile(const uint8_t* tile, int8_t* codes) {
    uint8_t bytes[kTileCodes];
    for (int line = 0; line < 8; line++) {
      for (int i = 0; i < 32; i++) {
        bytes[64 * line + i] = tile[32 * line + i] & 15;
        bytes[64 * line + 32 + i] = tile[32 * line + i] >> 4;
      }
    }
    pair_up(bytes, kOffset, codes);
  }
  template <class Lanes>
  static typename Lanes::Bytes key_line(const uint8_t* tile, int line) {
    const auto bytes = Lanes::load_bytes(tile + 64 * (line % 4));
    return line < 4 ? Lanes::low_nibbles(bytes) : Lanes::high_nibbles(bytes);
  }
  template <class Lanes>
  static typename Lanes::Bytes value_line(const uint8_t* tile, int line) {
    return Lanes::nibbles(tile + 32 * line);
  }
};

/// Expands pages of codes, 512 at a time. A number is scale · code rounded to bf16; the product is exact in f32 (11 + 8
/// bits), so every level expands to the same bits. `ahead` is what will be read next: its lines are fetched at reading
/// pace.
template <class Lanes, class Codes>
struct CodeExpansion {
  using V = typename Lanes::V;

  static void fetch(const uint8_t* ahead) {
    for (size_t at = 0; at < Codes::kTileBytes; at += 64) __builtin_prefetch(ahead + at, 0, 2);
  }

  static void keys(const uint8_t* page, const CodeLayout& at, uint16_t* out, const uint8_t* ahead) {
    const auto* scales = reinterpret_cast<const uint16_t*>(page + at.key_scales());
    alignas(64) int8_t codes[kTileCodes];
    for (size_t t = 0; t < at.key_tiles(); t++) {
      Codes::key_tile(page + t * at.tile, codes);
      fetch(ahead + t * at.tile);
      V low, high;  // of keys 0 … 7 and 8 … 15, each twice: once per dim of a pair
      Lanes::twice(Lanes::widen_f16(scales + t * 16), low, high);
      for (int line = 0; line < 16; line++)
        Lanes::store_bf16(out + t * kTileCodes + line * 32,
                          Lanes::mul(Lanes::from_i8(codes + line * 32), low),
                          Lanes::mul(Lanes::from_i8(codes + line * 32 + 16), high));
    }
  }

  static void values(const uint8_t* page, const CodeLayout& at, uint16_t* out, const uint8_t* ahead) {
    const auto* scales = reinterpret_cast<const uint16_t*>(page + at.value_scales());
    alignas(64) int8_t codes[kTileCodes];
    alignas(64) float s[32];
    for (size_t t = 0; t < at.value_tiles(); t++) {
      Codes::value_tile(page + at.values() + t * at.tile, codes);
      fetch(ahead + t * at.tile);
      const uint16_t* keys = scales + t / 4 * kPagePositions + t % 2 * 32;
      Lanes::store(s, Lanes::widen_f16(keys));
      Lanes::store(s + 16, Lanes::widen_f16(keys + 16));
      for (int line = 0; line < 16; line++) {
        const V pair = Lanes::pairs(s + 2 * line);  // the scales of a line's two keys, in turn
        Lanes::store_bf16(out + t * kTileCodes + line * 32,
                          Lanes::mul(Lanes::from_i8(codes + line * 32), pair),
                          Lanes::mul(Lanes::from_i8(codes + line * 32 + 16), pair));
      }
    }
  }
};

}  // namespace
}  // namespace liuli::kernels
