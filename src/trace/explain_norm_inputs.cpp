// What cannot be normalised, and why.
#include <cmath>

#include "trace/explain_writer.h"

namespace liuli::worked {
namespace {

constexpr std::string_view kPlace = "explain norm";

const char* kind_name(NormKind kind) {
  switch (kind) {
    case NormKind::none:
      return "none";
    case NormKind::layer:
      return "LayerNorm";
    case NormKind::rms:
      return "RMSNorm";
    case NormKind::batch:
      return "BatchNorm";
  }
  return "none";
}

void check_parameters(const NormInputs& in) {
  const bool batch = in.kind == NormKind::batch;
  if (in.kind == NormKind::rms && !in.beta.empty()) {
    refuse(kPlace, fmt::format("RMSNorm has no beta, but {} numbers are given for it", in.beta.size()));
  }
  const char* expected = batch ? "one column" : "the row";
  const size_t n = batch ? 1 : in.row.size();
  if (!in.gamma.empty()) require_same_length(kPlace, "gamma", in.gamma.size(), expected, n);
  if (!in.beta.empty()) require_same_length(kPlace, "beta", in.beta.size(), expected, n);
  if (!in.labels.empty()) require_same_length(kPlace, "labels", in.labels.size(), "the row", in.row.size());
  if (!in.observed.empty())
    require_same_length(kPlace, "observed", in.observed.size(), "the row", in.row.size());
  require_finite(kPlace, "gamma", in.gamma);
  require_finite(kPlace, "beta", in.beta);
}

void check_statistics(const NormInputs& in) {
  if (!std::isfinite(in.eps) || in.eps < 0)
    refuse(kPlace, fmt::format("eps is {}, but must be 0 or more", in.eps));
  if (in.mean.has_value() != in.variance.has_value()) {
    refuse(kPlace, in.mean ? "a mean is given without a variance" : "a variance is given without a mean");
  }
  if (!in.mean) return;
  if (in.kind != NormKind::batch) {
    refuse(kPlace,
           fmt::format("stored statistics belong to BatchNorm, but the kind is {}", kind_name(in.kind)));
  }
  require_finite(kPlace, "mean", {&*in.mean, 1});
  require_finite(kPlace, "variance", {&*in.variance, 1});
  if (*in.variance < 0) refuse(kPlace, fmt::format("variance is {}, but must be 0 or more", *in.variance));
}

}  // namespace

void check_norm_inputs(const NormInputs& in) {
  if (in.row.empty()) refuse(kPlace, "the row has 0 numbers, but at least 1 is needed");
  require_finite(kPlace, "row", in.row);
  check_parameters(in);
  check_statistics(in);
  if (in.round_steps && (*in.round_steps < 0 || *in.round_steps > 15)) {
    refuse(kPlace, fmt::format("steps rounded to {} decimals, but 0 to 15 are possible", *in.round_steps));
  }
}

void check_norm_values(const NormInputs& in, const NormValues& v) {
  if (v.sigma == 0) {
    refuse(kPlace,
           fmt::format("sigma is 0 (variance {} + eps {}), and x̂ would be a division by 0", v.var, in.eps));
  }
  if (!std::isfinite(v.sigma)) {
    refuse(kPlace, fmt::format("sigma is {}: the squares of the row overflow double's 1.8e308", v.sigma));
  }
  require_finite(kPlace, "out", v.out);
}

}  // namespace liuli::worked
