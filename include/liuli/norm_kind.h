// Which normalisation a place in the model applies.
#pragma once

namespace liuli {

/// The kind of a norm slot. x is one row (one token's d numbers) unless said otherwise; γ is the weight, β
/// the bias.
enum class NormKind {
  none,   ///< no norm in this slot: y = x
  layer,  ///< LayerNorm: μ = mean(x), σ = √(mean((x − μ)²) + ε), y = γ ⊙ (x − μ) / σ + β   (2d parameters)
  rms,  ///< RMSNorm: σ = √(mean(x²) + ε), y = γ ⊙ x / σ   (d parameters: no μ is subtracted, no β is added)
  batch,  ///< BatchNorm: the formula of layer, but μ and σ are those of one column over all samples, or, when
          ///< running, stored statistics; a row's result depends on the other rows
};

}  // namespace liuli
