#include "model/branches.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "model/block.h"
#include "ops/linear.h"

namespace liuli {

void BranchRunner::place(std::span<const Branch> branches, Step& s) {
  int64_t row = 0;
  for (size_t i = 0; i < branches.size(); i++) {
    const int first = branches[i].first_position, end = branches[i].trunk->length();
    LIULI_CHECK(first >= 0 && first < end && &branches[i].trunk->kernels() == &s.ops.attention);
    s.sequences.push_back({&caches_[i], row, end - first, first, end});
    for (int position = first; position < end; position++) s.positions.push_back(position);
    row += end - first;
  }
}

void BranchRunner::branch_caches(int layer, std::span<const Branch> branches) {
  for (size_t i = 0; i < branches.size(); i++) caches_[i].branch(*branches[i].trunk, layer);
  runner_.pool.parallel_for(static_cast<int64_t>(branches.size()), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++) {
      const Branch& branch = branches[static_cast<size_t>(i)];
      caches_[static_cast<size_t>(i)].copy_branch(*branch.trunk, layer, branch.first_position);
    }
  });
}

namespace {

std::vector<RopeAngles> angles_of(const Model& model, Step& s) {
  std::vector<RopeAngles> angles;
  for (size_t i = 0; i < model.config.ropes.size(); i++)
    angles.push_back(rope_angles(s.ops, model.config.ropes[i], model.rope_frequencies[i], s.positions.data(),
                                 static_cast<int64_t>(s.positions.size())));
  return angles;
}

// What the trunks know of a block that the branches enter with one new row each. `changed` becomes the step of these.
KnownQueries known_queries(const Model& model, std::span<const Branch> branches, const Step& s,
                           Step& changed) {
  const int64_t width = model.config.n_heads * model.config.head_dim;
  KnownQueries known{make_rows(s.ops.scratch, static_cast<int64_t>(s.positions.size()), width), {}, &changed};
  for (size_t i = 0; i < branches.size(); i++) {
    SequenceRows sequence = s.sequences[i];
    for (int64_t row = 0; row < sequence.n_rows; row++)
      std::memcpy(known.q.row(sequence.first_row + row), branches[i].trunk_queries + row * width,
                  static_cast<size_t>(width) * sizeof(float));
    known.rows.push_back(sequence.first_row);
    sequence.first_row = static_cast<int64_t>(i);
    sequence.n_rows = 1;
    changed.sequences.push_back(sequence);
    changed.positions.push_back(sequence.first_position);
  }
  changed.angles = angles_of(model, changed);
  return known;
}

}  // namespace

Rows BranchRunner::run(int first_layer, Rows x, std::span<const Branch> branches, const Matrix& output,
                       const StepOptions& options) {
  const ModelConfig& config = model_.config;
  LIULI_CHECK(config.causal && !config.is_encoder_decoder() && !branches.empty());
  runner_.scratch.release({});
  OpContext ops = make_context(runner_, options.product_class, model_.cache_form);
  CacheShape one_layer = cache_shape(config);
  one_layer.n_layers = 1;
  while (caches_.size() < branches.size()) caches_.emplace_back(one_layer, ops.attention);
  Step s(ops, options.listener);
  place(branches, s);
  LIULI_CHECK(x.n == static_cast<int64_t>(s.positions.size()));
  s.angles = angles_of(model_, s);
  Step changed(ops, options.listener);
  KnownQueries known{};
  if (std::all_of(branches.begin(), branches.end(),
                  [](const Branch& b) { return b.trunk_queries != nullptr; })) {
    known = known_queries(model_, branches, s, changed);
    s.known_queries = &known;
  }
  const auto n_layers = static_cast<int>(model_.blocks.size());
  for (int layer = first_layer; layer < n_layers; layer++) {
    branch_caches(layer, branches);
    if (layer + 1 == n_layers) s.kept = RowsKept::last_of_each;
    x = block_forward(model_.blocks[static_cast<size_t>(layer)], layer, x, s);
    s.known_queries = nullptr;
  }
  return unembed(model_, s, x, output);
}

}  // namespace liuli
