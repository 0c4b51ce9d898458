#include "convert/importance_collector.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "convert/type_mix.h"

namespace liuli {
namespace {

struct Multiplied {
  std::string_view tensor;  ///< after "blk.N.", without ".weight"
  Point point;
  bool per_expert;
};

constexpr Point kLn1 = norm_point(NormSite::ln1, NormStage::out),
                kLn2 = norm_point(NormSite::ln2, NormStage::out),
                kFinal = norm_point(NormSite::ln_final, NormStage::out);

constexpr Multiplied kInBlocks[] = {{"attn_q", kLn1, false},
                                    {"attn_k", kLn1, false},
                                    {"attn_v", kLn1, false},
                                    {"attn_qkv", kLn1, false},
                                    {"attn_q_a", kLn1, false},
                                    {"attn_kv_a_mqa", kLn1, false},
                                    {"attn_output", Point::attn_z, false},
                                    {"ffn_gate", kLn2, false},
                                    {"ffn_up", kLn2, false},
                                    {"ffn_gate_shexp", kLn2, false},
                                    {"ffn_up_shexp", kLn2, false},
                                    {"ffn_down", Point::mlp_post, false},
                                    {"ffn_down_shexp", Point::mlp_shared_post, false},
                                    {"ffn_gate_exps", kLn2, true},
                                    {"ffn_up_exps", kLn2, true},
                                    {"ffn_down_exps", Point::mlp_expert_post, true}};

/// "blk.17.attn_q.weight" → 17, "attn_q".
struct BlockTensor {
  int layer = -1;
  std::string_view name;
};
std::optional<BlockTensor> in_block(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.", kSuffix = ".weight";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  BlockTensor tensor;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), tensor.layer);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  tensor.name = name.substr(static_cast<size_t>(end - name.data()) + 1);
  return tensor;
}

/// A family that norms a branch's output only has no norm before it: the branch reads the residual stream.
Point without_norm(Point point, const WeightSource& source, int layer) {
  const std::string prefix = "blk." + std::to_string(layer);
  if (point == kLn1 && source.find(prefix + ".attn_norm.weight") == nullptr) return Point::resid_pre;
  if (point == kLn2 && source.find(prefix + ".ffn_norm.weight") == nullptr) return Point::resid_mid;
  return point;
}

void add_squares(const float* x, int64_t n, double* sums) {
  for (int64_t i = 0; i < n; i++) sums[i] += double{x[i]} * x[i];
}

}  // namespace

ImportanceCollector::ImportanceCollector(const WeightSource& source) {
  for (const TensorInfo& info : source.tensors())
    if (tensor_use(info.name, info.shape) != TensorUse::kept) add_tensor(source, info);
}

void ImportanceCollector::add_tensor(const WeightSource& source, const TensorInfo& info) {
  const bool tied = source.find("output.weight") == nullptr;
  if (info.name == "token_embd.weight" && !tied) return;  // rows are read, nothing is multiplied
  std::optional<Multiplied> use;
  int layer = -1;
  if (info.name == "output.weight" || info.name == "token_embd.weight") {
    use = Multiplied{info.name, kFinal, false};
  } else if (const auto block = in_block(info.name)) {
    layer = block->layer;
    for (const Multiplied& row : kInBlocks)
      if (row.tensor == block->name) use = row;
  }
  // A post-norm encoder (BERT) reads its norms' outputs, which no entry of the table names.
  const bool normed_after =
      layer >= 0 && source.find("blk." + std::to_string(layer) + ".layer_output_norm.weight");
  if (!use || normed_after) {
    missing_.push_back(info.name);
    return;
  }
  const Point point = layer < 0 ? use->point : without_norm(use->point, source, layer);
  Input* input = find(point, layer, use->per_expert);
  if (input == nullptr) {
    input = &inputs_.emplace_back(Input{point, layer, use->per_expert, info.shape.back(), 1, {}, {}, {}});
    if (use->per_expert && info.shape.size() == 3) input->n_matrices = info.shape[0];
    input->sums.resize(static_cast<size_t>(input->n_matrices * input->columns));
    input->counts.resize(static_cast<size_t>(input->n_matrices));
  }
  input->tensors.push_back(info.name);
}

ImportanceCollector::Input* ImportanceCollector::find(Point point, int layer, bool per_expert) {
  const auto found = std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& input) {
    return input.point == point && input.layer == layer && input.per_expert == per_expert;
  });
  return found == inputs_.end() ? nullptr : &*found;
}

bool ImportanceCollector::wants(const Place& place) const {
  if (place.stack != Stack::blocks) return false;
  return std::any_of(inputs_.begin(), inputs_.end(), [&](const Input& input) {
    // The rows of an expert are known by its `post`, whatever they are summed from.
    const bool names_rows = input.per_expert && place.point == Point::mlp_expert_post;
    return input.layer == place.layer && (input.point == place.point || names_rows);
  });
}

void ImportanceCollector::see(const ProbedValue& value) {
  const Rows& rows = value.rows;
  if (value.place.point == Point::mlp_expert_post) return see_expert_rows(value);
  if (find(value.place.point, value.place.layer, true) != nullptr) {
    ffn_input_width_ = rows.width;
    ffn_input_.resize(static_cast<size_t>(rows.n * rows.width));
    for (int64_t i = 0; i < rows.n; i++)
      std::copy_n(rows.row(i), rows.width, ffn_input_.data() + i * rows.width);
  }
  Input* input = find(value.place.point, value.place.layer, false);
  if (input == nullptr || rows.width != input->columns) return;
  for (int64_t i = 0; i < rows.n; i++) add_squares(rows.row(i), rows.width, input->sums.data());
  input->counts[0] += static_cast<double>(rows.n);
}

void ImportanceCollector::see_expert_rows(const ProbedValue& value) {
  const auto expert = static_cast<size_t>(value.place.expert);
  for (Input& input : inputs_) {
    if (!input.per_expert || input.layer != value.place.layer || expert >= input.counts.size()) continue;
    double* sums = input.sums.data() + static_cast<int64_t>(expert) * input.columns;
    const bool own = input.point == Point::mlp_expert_post;
    for (int64_t i = 0; i < value.rows.n; i++) {
      const float* x = own ? value.rows.row(i) : ffn_input_.data() + value.row_tokens[i] * ffn_input_width_;
      add_squares(x, input.columns, sums);
    }
    input.counts[expert] += static_cast<double>(value.rows.n);
  }
}

ImportanceMatrix ImportanceCollector::take() const {
  ImportanceMatrix matrix;
  for (const Input& input : inputs_) {
    ImportanceMatrix::Entry entry{{input.sums.begin(), input.sums.end()},
                                  {input.counts.begin(), input.counts.end()}};
    for (const std::string& tensor : input.tensors) matrix.entries[tensor] = entry;
  }
  return matrix;
}

}  // namespace liuli
