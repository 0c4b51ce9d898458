// One number of a run, worked out from the numbers it was made of.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "liuli/hook.h"
#include "liuli/trace.h"

namespace liuli {

/// A weight as the file has it.
struct StoredBits {
  std::string tensor, type;   ///< "blk.3.attn_q.weight", "Q4_K"
  int64_t row = 0;            ///< of that tensor (of its part, where a file keeps several matrices in one)
  int64_t block = 0, at = 0;  ///< block of that row, number within the block
  std::string bytes;          ///< hexadecimal, of the whole block
  /// Integer types: weight = scale · (code − offset) + minimum; otherwise `has_code` is false.
  bool has_code = false;
  int code = 0, offset = 0;
  float scale = 0, minimum = 0;
};

/// A number that another one was made of.
struct NumberOperand {
  std::string name;       ///< "blocks.3.attn.rot_q[5,2,17]", "blocks.3.attn.q.weight[130,17]"
  double value = 0;       ///< as a trace shows it; of a weight: decoded
  double used = 0;        ///< as it entered the calculation, after the class's rounding
  bool is_point = false;  ///< it can be asked for next, by its name
  std::optional<StoredBits> stored;
};

/// One summand (or one candidate of a choice): the product of its operands, times the same factor for all terms.
struct NumberTerm {
  std::vector<NumberOperand> operands;
  double value = 0;
};

/// What follows on the sum, in order: "bias", "× scale", "soft cap", … each with what it leaves.
struct NumberStep {
  std::string formula;
  double value = 0;
};

struct NumberExplanation {
  std::string name;   ///< "blocks.3.attn.pattern[2,5,1]", every index from 0
  std::string point;  ///< "blocks.3.attn.pattern"
  std::vector<int64_t> index, shape;
  std::string kind;     ///< "dot product", "softmax", "sum", "choice", …
  std::string formula;  ///< with the names of points
  std::string product_class, isa;
  std::string activation_rounding,
      weight_rounding;  ///< of a product: "bf16", "code · scale + minimum"; else ""
  double value = 0;     ///< as the run had it
  bool edited = false;  ///< a hook had this value in its hands: it may differ from what it was made of
  std::vector<NumberTerm> terms;  ///< largest |value| first (a choice: in order of preference)
  size_t n_terms = 0;             ///< how many there are; `rest` is the sum of those left out of `terms`
  double rest = 0;
  double sum = 0;  ///< of all
  std::vector<NumberStep> steps;
  double recomputed = 0;  ///< in double, from the operands as used
  double magnitude = 0;  ///< what the difference is measured with: Σ |terms| in the units of the result; of a
                         ///< quotient (softmax, norm) the result, times the largest exponent
  double difference = 0;  ///< |value − recomputed|
  bool agrees = false;    ///< difference ≤ 1e-5 · magnitude
  std::optional<double>
      exact;  ///< the same number of a run in double, when asked for (and when it exists there)
};

constexpr double kNumberTolerance = 1e-5;

struct ExplainNumberSettings {
  BesideTheTokens beside = {};
  bool with_exact = false;       ///< run once more in double
  size_t max_terms = 0;          ///< keep only the largest; 0: all
  std::vector<Hook> hooks = {};  ///< change the run on its way; a number is then explained as that run had it
};

/// The machine form; infinities become the strings "inf" and "-inf".
void to_json(nlohmann::ordered_json& json, const NumberExplanation& explanation);

}  // namespace liuli
