// A family's tensors found in a file, checked, and handed out by role.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "model/families/family.h"
#include "model/weights.h"

namespace liuli {

/// Where in the model a tensor stands.
struct TensorSite {
  int layer = -1;
  bool encoder = false;
};

/// The tensor of a name, with or without what wraps the bare model in some folders ("model.", "transformer.", "bert.").
const TensorInfo* find_tensor(const WeightSource& source, const std::string& name);

class Binder {
 public:
  using Where = TensorSite;
  /// Finds every tensor of the family. Errors: corrupt_file for a missing one or another shape; unsupported for a
  /// tensor that the family does not know.
  Binder(const WeightSource& source, const Family& family, Model& model);

  const std::string& path() const { return source_.path(); }
  bool has(Role role, Where at) const { return find(role, at) != nullptr; }
  /// Empty when the (optional) tensor is absent.
  Matrix matrix(Role role, Where at = {}) const;
  /// Rows [first, first + n) of a matrix that a file keeps in one piece with others (q, k and v).
  Matrix matrix_rows(Role role, Where at, int64_t first, int64_t n) const;
  /// Expert's matrix, whether the file stacks them in one tensor [n_experts, d_out, d_in] or not.
  Matrix expert_matrix(Role role, Where at, int expert) const;
  /// The transpose of n rows: stored once more, as they are for plain types, decoded to F32 for blocks.
  Matrix transposed_rows(Role role, Where at, int64_t first, int64_t n) const;
  /// A vector as f32, in the model's storage; null when the (optional) tensor is absent.
  const float* vector(Role role, Where at = {}) const;
  Linear linear(Role weight, Role bias, Where at) const { return {matrix(weight, at), vector(bias, at)}; }
  /// beta: the role of the shift that a LayerNorm has besides its weight.
  Norm norm(NormKind kind, Role weight, Where at = {}, std::optional<Role> beta = std::nullopt) const;

 private:
  struct Bound {
    const TensorInfo* tensor;
    TensorSpec spec;
  };

  struct StoredRows {
    DType type;
    FileRows rows;
    int64_t width;
    FileRows from(int64_t row) const { return rows.from(row * row_bytes(type, width)); }
  };

  StoredRows rows_of(const Bound& bound) const;
  FileRows bytes_of(const TensorInfo& tensor) const;
  StoredRows transpose(const TensorInfo& tensor, int64_t first, int64_t n) const;
  const TensorInfo* look_up(const std::string& name);
  void check(const std::string& name, const TensorInfo* tensor, const TensorSpec& spec) const;
  void refuse_strangers(const Family& family) const;
  const Bound* find(Role role, Where at, int expert = -1) const;

  const WeightSource& source_;
  Model& model_;
  std::map<std::tuple<Role, int, int, bool>, Bound> found_;  ///< role, layer, expert, encoder
  std::set<std::string> known_;                              ///< names in the file that have a role
  /// Rows that no file holds as such, once for all matrices over them.
  mutable std::map<const TensorInfo*, std::shared_ptr<BuiltRows>> transposes_, built_;
};

}  // namespace liuli
