// Which tensor becomes which type.
#pragma once
#include <vector>

#include "convert/quantize_source.h"
#include "liuli/convert.h"

namespace liuli {

struct QuantizePlan {
  std::vector<DType> types;  ///< of every tensor of the source
  TypeMix mix;
  std::vector<std::string> warnings;
};

/// Errors: not_found (no such mix or type), invalid_argument (a bad regular expression, an expression no tensor matches, a type
/// that cannot be written or whose blocks do not fit a row).
QuantizePlan make_quantize_plan(const QuantizeSource& source, const QuantizeSettings& settings);

}  // namespace liuli
