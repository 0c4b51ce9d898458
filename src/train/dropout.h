// Dropout where a branch joins the residual stream.
#pragma once
#include "model/probe.h"
#include "ops/context.h"

namespace liuli {

/// x = x ⊙ m / (1 − rate), m zero with probability `rate`. The mask of a value follows from seed, step, place and row, so
/// that the way back finds the same one, whatever the threads.
struct Dropout {
  double rate = 0;  ///< 0: off
  uint64_t seed = 0;
  int64_t step = 0;

  /// What is dropped: both branches of a block, cross-attention, and the embeddings as they enter the first block.
  bool drops(const Place& place) const;
  void apply(OpContext& c, const Place& place, Rows x) const;
};

}  // namespace liuli
