// Listens to a run and sums the squares of what every weight matrix is multiplied with.
#pragma once
#include <vector>

#include "convert/imatrix.h"
#include "formats/weight_source.h"
#include "model/probe.h"

namespace liuli {

/// The inputs of a model's matrices have names already, so no code of the model knows about this:
///
///   attn_q attn_k attn_v attn_qkv attn_q_a attn_kv_a_mqa   ln1.out (resid_pre where a family norms later)
///   attn_output                                            attn.z
///   ffn_gate ffn_up ffn_gate_shexp ffn_up_shexp            ln2.out (resid_mid)
///   ffn_down, ffn_down_shexp                               mlp.post, mlp.shared_post
///   ffn_gate_exps ffn_up_exps                              ln2.out, the rows each expert was given
///   ffn_down_exps                                          mlp.experts.E.post
///   output.weight, or a tied token_embd.weight             ln_final.out
class ImportanceCollector final : public Probe {
 public:
  /// The matrices of a GGUF file.
  explicit ImportanceCollector(const WeightSource& source);

  bool wants(const Place& place) const override;
  void see(const ProbedValue& value) override;
  bool may_change(const Place&) const override { return false; }

  /// Sums so far, under the tensors' names. Matrices that share an input share its sums.
  ImportanceMatrix take() const;
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  /// One input and the tensors it is multiplied with.
  struct Input {
    Point point;
    int layer;
    bool per_expert;  ///< rows of one expert at a time, sums [n_experts, columns]
    int64_t columns = 0, n_matrices = 1;
    std::vector<std::string> tensors;
    std::vector<double> sums;    ///< [n_matrices, columns]
    std::vector<double> counts;  ///< [n_matrices]
  };

  void add_tensor(const WeightSource& source, const TensorInfo& info);
  Input* find(Point point, int layer, bool per_expert);
  /// Rows of an expert, as the value they were computed from: the last ln2.out of the layer.
  void see_expert_rows(const ProbedValue& value);

  std::vector<Input> inputs_;
  std::vector<std::string> missing_;
  std::vector<float> ffn_input_;  ///< the last rows seen at the input of a layer with experts
  int64_t ffn_input_width_ = 0;
};

}  // namespace liuli
