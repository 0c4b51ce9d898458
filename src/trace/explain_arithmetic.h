// The arithmetic behind the explanations: double, compensated sums, no operation of the engine.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "liuli/explain.h"

namespace liuli::worked {

/// Neumaier's compensated sum: the error is about one rounding of the result, also where large terms cancel.
/// (A plain sum of 4096 activations of both signs loses 2 to 4 digits of a mean that is near 0.)
class Sum {
 public:
  void add(double term);
  double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0, lost_ = 0;
};

double sum_of(std::span<const double> terms);
double dot(std::span<const double> a, std::span<const double> b);
double l2_norm(std::span<const double> a);

/// x rounded to so many decimals: the decimal nearest to the double's exact value, ties to even.
double round_decimals(double x, int decimals);
/// x rounded to so many bits of mantissa, ties to even (the exponent is not limited).
double round_bits(double x, int bits);

/// What the steps of a norm yield. mean and sum belong to layer and batch; for rms, var is the mean square.
struct NormValues {
  double sum = 0;         ///< Σ x
  double mean = 0;        ///< as used by the next steps
  double raw_mean = 0;    ///< before the rounding of round_steps
  double square_sum = 0;  ///< Σ (x − μ)², or Σ x²
  double var = 0, raw_var = 0;
  double sigma = 0, raw_sigma = 0;
  std::vector<double> normalized, raw_normalized;
  std::vector<double> out, raw_out;
};

/// Follows the definition; inputs are taken as valid. γ and β are looked up with gamma_at and beta_at.
NormValues norm_values(const NormInputs& inputs);
double gamma_at(const NormInputs& inputs, size_t i);
double beta_at(const NormInputs& inputs, size_t i);

/// Mean, and mean squared distance from it.
struct Moments {
  double mean = 0, var = 0;
};
Moments moments(std::span<const double> row);

/// The steps of one row of attention. scores are scaled and capped; masked scores are −inf.
struct ScoreValues {
  std::vector<double> raw, scores, masked, exp, pattern;
  std::vector<bool> visible;
  double scale = 0, max = 0, sum = 0;
};
ScoreValues score_values(const ScoreInputs& inputs);

/// Indices of the n largest |values| (ties: the first), largest first.
std::vector<size_t> largest(std::span<const double> values, size_t n);

}  // namespace liuli::worked
