// A product's operands as its class multiplies them, for those who want to compute it again.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/context.h"
#include "ops/matrix.h"

namespace liuli {

/// The numbers of one output y = Σ x_i · w_i after every rounding that comes before the multiplication.
///   f32, exact  x and w as they are            prompt  w rounded to bf16, x too where the kernels take bf16; of F16
///               weights both x and w = scale · q with 16-bit q, one scale per row and 64 columns (kernels/fixed16.h);
///               in 8 bits x = scale · q with 8-bit q, one scale per 32 columns (kernels/int8_blocks.h), w as in decode
///   decode      x = scale · q with 16-bit q (one scale per 256 values) and w = scale · (code − offset) + minimum of
///               the stored block; types without codes keep x and w
struct ProductOperands {
  const char* x_form;  ///< "f32", "bf16", "16-bit integer · scale", "8-bit integer · scale"
  const char* w_form;  ///< the same, or "code · scale + minimum"
  std::vector<double> x, w;
};

/// Row `row` of `m` and the activations x [d_in], in the class of `c`.
ProductOperands product_operands(const OpContext& c, const Matrix& m, int64_t row, std::span<const float> x);

/// x alone.
std::vector<double> activation_operands(const OpContext& c, const Matrix& m, std::span<const float> x);

/// One number of a matrix as the file has it.
struct StoredWeight {
  int64_t file_row = 0;  ///< where the matrix's row lies in its tensor
  int64_t block = 0;     ///< of that row
  int64_t at = 0;        ///< column within the block
  std::string bytes;     ///< hexadecimal: the number itself, or its whole block
  /// Block types with integer codes: weight = scale · (code − offset) + minimum.
  struct Code {
    int code, offset;
    float scale, minimum;
  };
  std::optional<Code> code;
};
StoredWeight stored_weight(const Matrix& m, int64_t row, int64_t column);

}  // namespace liuli
