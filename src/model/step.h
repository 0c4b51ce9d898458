// One pass of some rows through the model: whose rows they are, and everything the ops need.
#pragma once
#include <memory>
#include <vector>

#include "model/kv_cache.h"
#include "model/probe.h"
#include "ops/context.h"
#include "ops/rope.h"

namespace liuli {

/// Consecutive positions of one sequence among a step's rows.
struct SequenceRows {
  KvCache* cache;  ///< already extended to first_position + n_rows
  int64_t first_row;
  int64_t n_rows;
  int first_position;
  int n_keys;  ///< keys there are for these rows: first_position + n_rows, or the source's
};

/// How latent attention multiplies: with keys and values of every head, or with the compressed vectors themselves.
enum class LatentForm : uint8_t { expanded, absorbed };

/// The rows with which a block goes on from the keys and values on: in the last block nobody may want the others.
enum class RowsKept : uint8_t { all, last_of_each, none };

struct Step;

/// Rows of a step of which only some differ from a run that was made before: of the others the queries are known, and the
/// keys and values lie in the caches.
struct KnownQueries {
  Rows q;                     ///< of every row, rotated; those of the changed rows are yet to be written
  std::vector<int64_t> rows;  ///< the changed ones
  Step* changed;              ///< a step of these rows alone
};

/// The lists of a step. A runner keeps them from one step to the next, so that a generated token allocates nothing.
struct StepLists {
  std::vector<int> tokens, types;  ///< of every row: its token, its segment
  std::vector<SequenceRows> sequences;
  /// The same rows over the keys and values of their source (`cache` and `n_keys` are the source's), for
  /// cross-attention; empty in every other model.
  std::vector<SequenceRows> over_source;
  std::vector<int> positions;             ///< of every row
  std::vector<RopeAngles> angles;         ///< per ModelConfig::ropes
  std::vector<int64_t> last_row_indices;  ///< filled by keep_rows

  void clear();
};

struct Step : StepLists {
  explicit Step(OpContext& context, Probe* watcher = nullptr) : ops(context), listener(watcher) {}

  OpContext& ops;
  Probe* listener = nullptr;
  Stack stack = Stack::blocks;
  LatentForm latent_form =  ///< follows the class, never the number of rows
      ops.product_class == ProductClass::decode ? LatentForm::absorbed : LatentForm::expanded;
  std::unique_ptr<KvCache> expanded;  ///< latent attention's keys and values of the layer at hand

  RowsKept kept = RowsKept::all;  ///< in the block at hand

  /// Narrows `sequences` and `positions` to the rows that are kept, and moves those of `rows` to its front.
  Rows keep_rows(Rows rows);
  /// Moves the rows that keep_rows kept to the front of these, too.
  Rows kept_rows(Rows rows) const;

  KnownQueries* known_queries = nullptr;  ///< of the block at hand

  Place place(Point point, int layer, int expert = -1) const { return {point, layer, stack, expert}; }
  bool listening(Point point, int layer) const {
    return listener != nullptr && listener->wants(place(point, layer));
  }

  /// Whether what is shown there may come back changed.
  bool changeable(Point point, int layer) const {
    return listening(point, layer) && listener->may_change(place(point, layer));
  }

  /// Shows rows to the listener; one test when nobody listens. It may change them.
  void probe(Point point, int layer, Rows rows) const {
    if (listener != nullptr) [[unlikely]]
      show(place(point, layer), rows);
  }
  void show(const Place& place, Rows rows) const;

  /// Shows the rows of those tokens that go through one expert; row i is of the step's row row_tokens[i].
  void probe_expert(Point point, int layer, int expert, Rows rows, const int* row_tokens) const {
    if (listener == nullptr || !listener->wants(place(point, layer, expert))) return;
    const int first = sequences.empty() ? 0 : sequences.front().first_position;
    listener->see({place(point, layer, expert), rows, first, 1, 0, row_tokens});
  }
};

}  // namespace liuli
