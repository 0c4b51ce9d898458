// The weights of a model in training: plain f32, their gradients beside them, under the names files use.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/arena.h"
#include "formats/weight_source.h"
#include "liuli/config.h"
#include "model/backward.h"
#include "model/tensor_roles.h"

namespace liuli {

struct Parameter {
  std::string name;  ///< as in a Hugging Face folder
  TensorSpec spec;   ///< as the family lists it for such folders: how its file form differs from ours
  std::vector<int64_t> shape;
  float* value = nullptr;
  float* gradient = nullptr;
  int64_t size = 0;

  bool is_matrix() const { return shape.size() >= 2; }
};

/// All parameters of a configuration, each once (tied matrices share one), zero at first.
class Parameters {
 public:
  /// like: a file whose optional tensors (biases) shall exist here too; null: none of them.
  explicit Parameters(const ModelConfig& config, const WeightSource* like = nullptr);
  /// Parameters that no file knows (adapters): names and shapes as given, zero at first.
  explicit Parameters(std::vector<Parameter> named);

  std::vector<Parameter>& all() { return parameters_; }
  const std::vector<Parameter>& all() const { return parameters_; }
  Parameter* find(std::string_view name);
  int64_t count() const { return count_; }
  void clear_gradients();
  GradientMap gradient_map();

  /// Copies the values from an opened model of the same family, undoing what the file's layout does to them. Errors:
  /// corrupt_file (a tensor is missing or of another shape).
  void copy_from(const WeightSource& source);
  /// A parameter's values (or gradients: `gradient`) as its file holds them: transposed, interleaved or less one where the
  /// family's files are.
  std::vector<float> file_form(const Parameter& p, bool gradient = false) const;

  /// The parameters as a model's weights, in place: what the block runs on while it learns.
  std::shared_ptr<WeightSource> source() const;

 private:
  void allocate();

  std::vector<Parameter> parameters_;
  std::shared_ptr<AlignedBuffer> values_, gradients_;
  int64_t count_ = 0;
};

}  // namespace liuli
