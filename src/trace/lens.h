// The logit lens: what a model would say if it stopped after a given block.
#pragma once
#include <vector>

#include "model/transformer.h"

namespace liuli {

/// Keeps the last token's rows of the residual stream and of both branches, block by block.
class LastTokenProbe : public Probe {
 public:
  bool wants(const Place& place) const override;
  void see(const ProbedValue& value) override;
  bool may_change(const Place&) const override { return false; }

  using RowValues = std::vector<float>;
  RowValues embed;
  RowValues first_norm_input;                            ///< resid_pre of block 0
  std::vector<RowValues> attn_out, mlp_out, resid_post;  ///< per layer
};

/// Final norm and output matrix over some rows of the residual stream.
/// Shapes: rows.size() rows of [d_model]; result [rows.size(), vocab_size], valid until the runner is used
/// again.
Rows lens_logits(const Model& model, Runner& runner, const std::vector<std::vector<float>>& rows,
                 ProductClass product_class);

double l2_norm(const std::vector<float>& row);

}  // namespace liuli
