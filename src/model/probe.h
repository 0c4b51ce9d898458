// The seam through which a model's inside is watched.
#pragma once
#include "core/rows.h"
#include "model/point.h"

namespace liuli {

/// A value on its way, in place: rows of tokens, or for score-like points rows of keys per head.
struct ProbedValue {
  Place place;
  Rows rows;               ///< [n_tokens, width]; for scores: head h's rows are rows.data + h · head_stride
  int first_position = 0;  ///< position of row 0 in its sequence
  int64_t heads = 1;       ///< > 1 only for score-like points
  int64_t head_stride = 0;
  const int* row_tokens =
      nullptr;  ///< values of some tokens only (an expert's): row i is of this step's row row_tokens[i]
};

/// A listener. It sees prefill and decode alike. Reading changes no bit of any result; what it writes into a
/// residual point or a branch's output takes effect.
class Probe {
 public:
  virtual ~Probe() = default;
  virtual bool wants(const Place& place) const = 0;
  virtual void see(const ProbedValue& value) = 0;
  /// Whether see() may write there. For one that only reads, nothing is kept to compare with afterwards.
  virtual bool may_change(const Place&) const { return true; }
  /// Where the listener would like a packed value of n numbers to be formed, so that it need not copy it; null: anywhere.
  virtual float* storage(const Place&, int64_t) { return nullptr; }
  /// Whether it can listen to a step of several sequences: it then sees their rows one after another.
  virtual bool sees_batches() const { return false; }
};

}  // namespace liuli
