// Explaining numbers of a run: what each is made of, and the same result once more in double.
#pragma once
#include "liuli/number_explanation.h"
#include "model/transformer.h"

namespace liuli {

struct NumberQuestion {
  std::vector<int> tokens;
  std::vector<std::string> at;  ///< "blocks.3.attn.pattern[2,5,1]"
  ProductClass product_class = ProductClass::prompt;
  ExplainNumberSettings settings;
};

/// One explanation per entry of `at`. The model runs as often as operands turn out to be needed (two or three times),
/// and no further than they lie. Errors: not_found, invalid_argument (names and indices; a token that does not go through
/// the expert).
std::vector<NumberExplanation> explain_numbers(const Model& model, Runner& runner,
                                               const NumberQuestion& question);

}  // namespace liuli
