// Runs that share their beginning with another one: the same prompt up to some position and some block, then their own.
#pragma once
#include <span>
#include <vector>

#include "model/transformer.h"

namespace liuli {

/// One variant of a run (its trunk): rows of the residual stream from `first_position` to the trunk's end, entering some
/// block. What lies before, in positions and in blocks, is the trunk's own.
struct Branch {
  const KvCache* trunk;
  int first_position;
  /// The trunk's rotated queries in the block it enters, of its rows, one after another: where all branches of a run have
  /// them, only their first rows differ from the trunk there, and only these are projected. Not for latent attention.
  const float* trunk_queries = nullptr;
};

/// Several branches through the remaining blocks together, so that every weight is read once for all of them. Below the
/// first block nothing runs, and before a branch's first position its keys and values are read where the trunk keeps them.
class BranchRunner {
 public:
  BranchRunner(const Model& model, Runner& runner) : model_(model), runner_(runner) {}

  /// Runs blocks first_layer … over x, the branches' rows one after another, in order of position; x is overwritten.
  /// Returns the logits of each branch's last row: [n_branches, output.d_out()], valid until the runner works again.
  /// `output` holds the rows of the output matrix that are wanted. A listener must see batches, or there is one branch;
  /// in the last block it sees, after the keys and values, the last row of every branch only.
  ///
  /// A branch's bits are those of a run of its own. REQUIRES: a causal model without an encoder; one class of products.
  Rows run(int first_layer, Rows x, std::span<const Branch> branches, const Matrix& output,
           const StepOptions& options);

 private:
  void place(std::span<const Branch> branches, Step& s);
  void branch_caches(int layer, std::span<const Branch> branches);

  const Model& model_;
  Runner& runner_;
  std::vector<KvCache> caches_;  ///< of the block at hand, one per branch; kept from run to run
};

}  // namespace liuli
