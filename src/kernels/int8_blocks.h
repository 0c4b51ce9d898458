// 8-bit blocks, the form in which prompts multiply on request (--prompt-products int8). 32 columns of a row of activations
// share a scale, x ≈ scale · q; weights keep their file's codes c (offset taken off), scales s and minima m.
//
//   scale = max |x| / 127                 bits compared, so that a NaN wins; below 2^-100 the block counts as zeros
//   q = round to nearest even(x / scale)
//   f = float(Σ c·q) · s                  of the 32 columns; with two scales of the first 16, then of the others with
//   f = fma(m, float(Σ q), f)             the product fused: f = fma(float(Σ c·q), s, f). Minima where the type has them
//   y = fma(f, scale, y)                  blocks ascending
//
// The sums are exact integers, so every level has the same bits. On Gaussian activations the error (NMSE) is 2.9e-5; a scale
// per 256 columns would leave 4.9e-5. A block that is not finite has a scale of inf or NaN, and NaN comes out.
//
// In memory, of 16 rows: eight lines of [16 rows][4 columns], then lines of f32 or int32 per row. Activations lie as q + 128,
// unsigned, because that is what vpdpbusd multiplies by signed codes; what is too much, 128 · Σ c, is where a weight's
// sums start.
#pragma once
#include <cstdint>

namespace liuli::kernels {

constexpr int kInt8Block = 32;  // columns that share a scale
constexpr int kInt8Line = 64;   // bytes
constexpr int kInt8Quads = kInt8Block / 4;
constexpr int kInt8Bytes = 14 * kInt8Line;  // of a block of 16 rows

// Lines of weights behind their codes. With one scale per block, the second of each pair is left as it is.
constexpr int kInt8Starts = kInt8Quads * kInt8Line;  // int32: −128 · Σ c, of the block or of its halves
constexpr int kInt8Scales = kInt8Starts + 2 * kInt8Line;  // f32
constexpr int kInt8Minima = kInt8Scales + 2 * kInt8Line;  // f32; only where the type has them

// Lines of activations behind q + 128.
constexpr int kInt8RowScale = kInt8Quads * kInt8Line;      // f32
constexpr int kInt8RowSum = kInt8RowScale + kInt8Line;     // f32: Σ q of the block
constexpr int kInt8RowHalfSums = kInt8RowSum + kInt8Line;  // f32, two lines: of its halves

constexpr float kInt8ByLargest = 1.0f / 127.0f;
constexpr float kInt8Least = 7.8886091e-31f;  // 2^-100

}  // namespace liuli::kernels
