// The bf16 page of the KV cache: 64 positions of one key/value head, in the order the products read them.
//
//   K: [4 key tiles][padded head_dim / 32][16 pairs of dims][16 keys][2]     a 64-byte line: 16 keys × one
//   pair of dims V: [padded value_dim / 16][2][16 pairs of keys][16 dims][2]              a 64-byte line: 16
//   dims × one pair of keys
//
// A run of 16 lines is a tile of a bf16 matrix unit; a single line is an operand of a bf16 dot product or,
// shifted or masked to 32 bits, of an f32 FMA. So every ISA multiplies the cache where it lies. Padding dims
// stay zero.
#pragma once
#include "kernels/kernels.h"

namespace liuli::kernels {

/// Bytes of one page: 64 positions of bf16 keys (head_dim padded to 32) and values (value_dim padded to 16).
size_t bf16_page_bytes(int head_dim, int value_dim) noexcept;
/// Rounds k and v to nearest even bf16 and writes them as position `slot` of a page that was zeroed when new.
void bf16_page_append(uint8_t* page, int slot, const float* k, const float* v, int head_dim,
                      int value_dim) noexcept;
/// Reads position `slot` back as stored.
void bf16_page_read(const uint8_t* page, int slot, float* k, float* v, int head_dim, int value_dim) noexcept;

}  // namespace liuli::kernels
