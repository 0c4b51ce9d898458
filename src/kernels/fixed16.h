// 16-bit fixed point, the prompt product's form of weights and activations that are worth more than bf16's 8 bits: 64
// columns of a row share a scale, x ≈ scale · q.
//
//   m = max |x|                           bits compared, so that a NaN wins; below 2^-100 the block counts as zeros
//   scale = m · max(√Σ(x / m)² / 46000, 1 / 32766)
//   q = round to nearest even(x / scale)
//
// The scale follows from the block's length as a vector, not from its largest value alone: then ‖q‖ < √2³¹ for both
// operands, and by Cauchy and Schwarz no sum of products of a block leaves 32 bits. A block of Gaussian values keeps a
// step of σ / 5750, whose error (NMSE 2.5e-9) is a quarter of what rounding to f16 costs; scales from the largest value
// that rule overflow out would keep a third of that resolution. A block that is not finite has a scale of inf or NaN,
// and NaN comes out.
//
// In memory a block of 16 rows is 32 lines of [16 rows][2 columns] and one line of their scales.
#pragma once
#include <cstdint>

namespace liuli::kernels {

constexpr int kFixedBlock = 64;                             // columns that share a scale
constexpr int kFixedLines = kFixedBlock / 2 + 1;            // of 64 bytes, per block of 16 rows
constexpr int kFixedLine = 32;                              // 16-bit values in a line
constexpr int kFixedScales = kFixedBlock / 2 * kFixedLine;  // where the scales begin, in 16-bit values
constexpr float kFixedByLength = 1.0f / 46000.0f;           // √2³¹ = 46341, less what rounding may add
constexpr float kFixedByLargest = 1.0f / 32766.0f;
constexpr float kFixedLeast = 7.8886091e-31f;  // 2^-100

}  // namespace liuli::kernels
