// Block types taken apart into unsigned codes, scales and minima: weight = scale · (code − offset) + minimum.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace liuli::kernels {

/// One row's chunk of 256 columns. `scale[i]` and `minimum[i]` belong to sub-block i of `sub` columns; the
/// minimum is 0 for types without one. Codes are what the integer kernels multiply, in column order.
struct BlockCodes {
  uint8_t code[256];
  float scale[16];
  float minimum[16];
};

struct BlockCodesType {
  int sub;          ///< columns per scale: 16 or 32
  int offset;       ///< taken off every code
  int least, most;  ///< bounds of the codes
  bool has_minimum;
  /// Takes apart n columns of file blocks (n is a multiple of the block, at most 256).
  void (*split)(const uint8_t* blocks, int n, BlockCodes& out) noexcept;
};

// IQ1, IQ2, IQ3 (block_codes_iq.cpp): a super-block of 256.
void split_iq1_s(const uint8_t* block, int n, BlockCodes& out) noexcept;
void split_iq1_m(const uint8_t* block, int n, BlockCodes& out) noexcept;
void split_iq2_xxs(const uint8_t* block, int n, BlockCodes& out) noexcept;
void split_iq2_xs(const uint8_t* block, int n, BlockCodes& out) noexcept;
void split_iq2_s(const uint8_t* block, int n, BlockCodes& out) noexcept;
void split_iq3_xxs(const uint8_t* block, int n, BlockCodes& out) noexcept;
void split_iq3_s(const uint8_t* block, int n, BlockCodes& out) noexcept;

/// Null for types that have no integer kernels.
const BlockCodesType* block_codes_type(DType type) noexcept;

}  // namespace liuli::kernels
