// Many runs that each differ in one value: batches of branches of unpatched runs.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "generate/sequence.h"
#include "model/branches.h"
#include "model/probe.h"

namespace liuli {

/// One patch: a value at a token of one block, of one head or (−1) whole.
struct SweepPatch {
  int pair, layer, position, head;
};

/// Where patches go in, and how values lie there.
struct SweepPoint {
  Point point;
  bool scores = false;  ///< [head, token, key]
  int64_t heads = 1;    ///< of the point
  int64_t head_width = 0;
};
/// Errors: not_found; invalid_argument for a point that is not one row (or row per head) for each token of a block.
SweepPoint find_sweep_point(const ModelConfig& config, const std::string& name,
                            const std::vector<int>& layers);

/// Pairs of runs (the trunk that is patched, the donor whose values go in) and patches of them.
class Sweeper {
 public:
  Sweeper(const Model& model, Runner& runner, ProductClass product_class, SweepPoint point,
          std::vector<int> layers);

  /// Runs both prompts of every pair, keeping what patches need. Returns the logits behind both last tokens, [vocab_size].
  struct Logits {
    std::vector<float> trunk, donor;
  };
  struct Prompts {
    const std::vector<int>&trunk, &donor;
  };
  std::vector<Logits> add_pairs(std::span<const Prompts> pairs);
  void clear_pairs() { runs_.clear(); }
  /// What add_pair keeps for a prompt of n tokens.
  int64_t pair_bytes(int64_t n_tokens) const;

  /// Whether a patch replaces a value by the same bits.
  bool changes_nothing(const SweepPatch& patch) const;
  /// Runs patches of one block (pair counts from the last clear_pairs()) together; the logits rows are in their order.
  Rows run(std::span<const SweepPatch> patches, const Matrix& output);
  /// The same, one patch, as a whole run with a hook.
  Rows run_alone(const SweepPatch& patch, const Matrix& output);
  /// How many of the patches, from the first, make one batch of at most about `rows` rows.
  size_t batch_size(std::span<const SweepPatch> patches, int64_t rows) const;

 private:
  struct Run {
    std::vector<int> ids;
    std::unique_ptr<Sequence> trunk;
    std::vector<std::vector<float>> stream;  ///< resid_pre of the trunk, per block: [n, d_model]
    std::vector<std::vector<float>>
        queries;  ///< rot_q of the trunk, per entry of layers_, where it is of use
    std::vector<std::vector<float>> own, donor;  ///< the point's values of both runs, per entry of layers_
  };
  class Patcher;
  struct Recorded;
  Run new_run(const std::vector<int>& trunk) const;
  void run_prompts(std::span<Recorded> prompts);
  size_t layer_index(int layer) const;
  bool knows_queries() const;
  const float* queries_of(const Run& run, const SweepPatch& patch) const;

  const Model& model_;
  Runner& runner_;
  ProductClass class_;
  SweepPoint point_;
  std::vector<int> layers_;
  BranchRunner branches_;
  std::vector<Run> runs_;
};

/// The rows `ids` of a matrix, in the form the class multiplies: products with them have the bits of the whole one's.
Matrix select_rows(const Matrix& matrix, std::span<const int> ids, ThreadPool& pool);

}  // namespace liuli
