// The pages of the KV cache: 64 positions of one key/value head, in the order the products read them.
//
//   K: [4 key tiles][padded head_dim / 32][16 lines]     a 64-byte line: 16 keys × one pair of dims
//   V: [padded value_dim / 16][2][16 lines]              a 64-byte line: 16 dims × one pair of keys
//
// A page of shared values has no V: kv_shared.h makes it of K when it is wanted.
//
// In bf16 a line is [16][2]. A run of 16 lines is a tile of a bf16 matrix unit; a single line is an operand of a bf16
// dot product or, shifted or masked to 32 bits, of an f32 FMA. In f16 a line is [2][16]: either half widens to f32 in
// one instruction. So every ISA multiplies the cache where it lies. Padding dims stay zero.
#pragma once
#include "kernels/kernels.h"

namespace liuli::kernels {

/// Bytes of one page of either form: 64 positions of keys (head_dim padded to 32) and, unless they are shared, values
/// (value_dim padded to 16).
size_t kv_page_bytes(PageShape shape) noexcept;

/// Rounds k and v to nearest even and writes them as position `slot` of a page that was zeroed when new. What f16 cannot
/// hold becomes ±65504: an infinite key or value would make every later token NaN.
void bf16_page_append(uint8_t* page, int slot, const float* k, const float* v, PageShape shape) noexcept;
void f16_page_append(uint8_t* page, int slot, const float* k, const float* v, PageShape shape) noexcept;
/// Reads position `slot` back as stored.
void bf16_page_read(const uint8_t* page, int slot, float* k, float* v, PageShape shape) noexcept;
void f16_page_read(const uint8_t* page, int slot, float* k, float* v, PageShape shape) noexcept;

/// The same positions as 8- or 4-bit codes, every 32 dims of a key or value with an f16 scale of their own (kv_codes.h);
/// attention expands them to bf16 pages on its way. A number is bf16(scale · code):
///   Q8_0   scale = max |x| / 127, code = round(x / scale)
///   Q4_0   scale = (the x of largest magnitude) / −8, code = round(x / scale) within −8 … 7
/// read() gives the numbers as attention multiplies them.
size_t q8_0_page_bytes(PageShape shape) noexcept;
size_t q4_0_page_bytes(PageShape shape) noexcept;
void q8_0_page_append(uint8_t* page, int slot, const float* k, const float* v, PageShape shape) noexcept;
void q4_0_page_append(uint8_t* page, int slot, const float* k, const float* v, PageShape shape) noexcept;
void q8_0_page_read(const uint8_t* page, int slot, float* k, float* v, PageShape shape) noexcept;
void q4_0_page_read(const uint8_t* page, int slot, float* k, float* v, PageShape shape) noexcept;

}  // namespace liuli::kernels
