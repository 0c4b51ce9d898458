#include "model/load.h"

#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "liuli/error.h"
#include "model/families/family.h"
#include "ops/rope.h"

namespace liuli {
namespace {

const Family& family_of(const WeightSource& source) {
  const auto architecture = source.metadata().text("general.architecture");
  if (!architecture)
    throw Error(ErrorCode::corrupt_file, source.path() + ": key general.architecture is missing");
  const Family* family = find_family(*architecture);
  if (family == nullptr)
    throw Error(ErrorCode::unsupported, fmt::format("{}: architecture \"{}\" is not supported; Liuli runs {}",
                                                    source.path(), *architecture, family_names()));
  return *family;
}

ModelConfig configure(const Family& family, const WeightSource& source) {
  ConfigReader reader(source, family.name);
  ModelConfig config = family.read_config(reader);
  reader.refuse_unread();
  return config;
}

// The tensors of a family found in the file and checked; hands them out by role.
class Binder {
 public:
  Binder(const WeightSource& source, const std::vector<TensorSpec>& specs, Model& model)
      : source_(source), model_(model) {
    std::set<std::string> known;
    for (const TensorSpec& spec : specs) {
      const std::string name = gguf_tensor_name(spec.role, spec.layer);
      known.insert(name);
      const TensorInfo* tensor = source.find(name);
      if (tensor == nullptr && spec.optional) continue;
      check(name, tensor, spec);
      found_[{spec.role, spec.layer}] = {tensor, spec.order};
    }
    for (const TensorInfo& tensor : source.tensors())
      if (known.count(tensor.name) == 0)
        throw Error(ErrorCode::unsupported, fmt::format("{}: tensor {} is not part of family {}",
                                                        source.path(), tensor.name, model.config.family));
  }

  Matrix matrix(Role role, int layer = -1) const {
    const auto it = found_.find({role, layer});
    if (it == found_.end()) return {};
    const TensorInfo& t = *it->second.tensor;
    return Matrix(t.name, t.type, t.shape[0], t.shape[1], t.data, it->second.order);
  }

  /// A vector as f32, in the model's storage; null when the (optional) tensor is absent.
  const float* vector(Role role, int layer = -1) const {
    const auto it = found_.find({role, layer});
    if (it == found_.end()) return nullptr;
    const TensorInfo& t = *it->second.tensor;
    std::vector<float> stored(static_cast<size_t>(t.elements()));
    kernels::decode_row(t.type, t.data, t.elements(), stored.data());
    std::vector<float>& out = model_.vectors.emplace_back(stored);
    for (size_t i = 0; i < out.size(); i++)
      out[i] = stored[static_cast<size_t>(it->second.order.file_row(static_cast<int64_t>(i)))];
    return out.data();
  }

  bool has(Role role, int layer) const { return found_.count({role, layer}) != 0; }

  /// Rows [first, first + n) of a matrix that a file keeps in one piece (q, k and v).
  Matrix matrix_rows(Role role, int layer, int64_t first, int64_t n) const {
    const TensorInfo& t = *found_.at({role, layer}).tensor;
    return Matrix(t.name, t.type, n, t.shape[1], t.data + first * row_bytes(t.type, t.shape[1]));
  }

  Linear linear(Role weight, Role bias, int layer) const {
    return {matrix(weight, layer), vector(bias, layer)};
  }

  /// beta: the role of the shift that a LayerNorm has besides its weight.
  Norm norm(NormKind kind, Role weight, int layer = -1, std::optional<Role> beta = std::nullopt) const {
    if (kind == NormKind::none) return {};
    const float* shift = kind == NormKind::layer && beta ? vector(*beta, layer) : nullptr;
    return {kind, vector(weight, layer), shift, static_cast<float>(model_.config.norm_eps)};
  }

 private:
  struct Bound {
    const TensorInfo* tensor;
    RowOrder order;
  };

  void check(const std::string& name, const TensorInfo* tensor, const TensorSpec& spec) const {
    if (tensor == nullptr)
      throw Error(ErrorCode::corrupt_file,
                  fmt::format("{}: tensor {} {} is missing", source_.path(), name, shape_text(spec.shape)));
    if (tensor->shape != spec.shape)
      throw Error(ErrorCode::corrupt_file,
                  fmt::format("{}: tensor {} has shape {}, the configuration demands {}", source_.path(),
                              name, shape_text(tensor->shape), shape_text(spec.shape)));
  }

  const WeightSource& source_;
  Model& model_;
  std::map<std::pair<Role, int>, Bound> found_;
};

// Biases of keys can be large in the slowly turning pairs: in Qwen2.5-0.5B's first block 145 beside values
// around 1, so that bf16 rounds away what tells the keys apart (NMSE of attention 5e-2; with the bias taken
// off first 9e-6; f16 keys 1.5e-4). Pairs that turn by more than about a radian within 1024 positions keep
// their bias: it would not stay constant.
const float* key_offset(Model& model, const float* k_bias, int rope) {
  const ModelConfig& c = model.config;
  if (k_bias == nullptr || c.attention_soft_cap > 0) return nullptr;
  constexpr double kSlow = 1.0 / 1024;
  const RopeConfig& config = c.ropes[static_cast<size_t>(rope)];
  const std::vector<double> frequencies = rope_frequencies(config);
  std::vector<float>& offset = model.vectors.emplace_back(k_bias, k_bias + c.n_kv_heads * c.head_dim);
  for (size_t i = 0; i < offset.size(); i++) {
    const size_t at = i % static_cast<size_t>(c.head_dim);
    const bool turns = at < 2 * frequencies.size() && frequencies[at % frequencies.size()] > kSlow;
    if (turns) offset[i] = 0;
  }
  return offset.data();
}

void bind_qkv(const Binder& binder, const ModelConfig& c, int layer, Attention& a) {
  if (!binder.has(Role::attn_qkv, layer)) {
    a.q = binder.linear(Role::attn_q, Role::attn_q_bias, layer);
    a.k = binder.linear(Role::attn_k, Role::attn_k_bias, layer);
    a.v = binder.linear(Role::attn_v, Role::attn_v_bias, layer);
    return;
  }
  const float* bias = binder.vector(Role::attn_qkv_bias, layer);
  const int64_t q = c.n_heads * c.head_dim, kv = c.n_kv_heads * c.head_dim;
  auto part = [&](int64_t first, int64_t n) {
    return Linear{binder.matrix_rows(Role::attn_qkv, layer, first, n),
                  bias == nullptr ? nullptr : bias + first};
  };
  a.q = part(0, q);
  a.k = part(q, kv);
  a.v = part(q + kv, kv);
}

Attention bind_attention(const Binder& binder, Model& model, int layer) {
  const ModelConfig& c = model.config;
  const LayerPlan& plan = c.layers[static_cast<size_t>(layer)];
  Attention a;
  bind_qkv(binder, c, layer, a);
  a.o = binder.linear(Role::attn_o, Role::attn_o_bias, layer);
  a.qk_norm = c.qk_norm;
  if (c.qk_norm != QkNorm::none) {
    a.q_norm = binder.norm(NormKind::rms, Role::attn_q_norm, layer);
    a.k_norm = binder.norm(NormKind::rms, Role::attn_k_norm, layer);
  }
  a.n_heads = c.n_heads;
  a.n_kv_heads = c.n_kv_heads;
  a.head_dim = c.head_dim;
  a.rope = plan.rope;
  a.sliding_window = plan.sliding_window;
  a.scale = static_cast<float>(c.attention_scale);
  a.soft_cap = static_cast<float>(c.attention_soft_cap);
  a.causal = c.causal;
  a.key_offset = key_offset(model, a.k.bias, plan.rope);
  return a;
}

Block bind_block(const Binder& binder, Model& model, int layer) {
  const ModelConfig& c = model.config;
  const LayerPlan& plan = c.layers[static_cast<size_t>(layer)];
  Block b;
  b.attn_norm.before = binder.norm(plan.attn_norm.before, Role::attn_norm, layer, Role::attn_norm_bias);
  b.attn_norm.on_output = binder.norm(plan.attn_norm.on_output, Role::attn_output_norm, layer);
  b.attention = bind_attention(binder, model, layer);
  b.ffn_norm.before = binder.norm(plan.ffn_norm.before, Role::ffn_norm, layer, Role::ffn_norm_bias);
  b.ffn_norm.on_output = binder.norm(plan.ffn_norm.on_output, Role::ffn_output_norm, layer);
  if (c.gated_ffn) b.ffn.gate = binder.linear(Role::ffn_gate, Role::ffn_gate_bias, layer);
  b.ffn.up = binder.linear(Role::ffn_up, Role::ffn_up_bias, layer);
  b.ffn.down = binder.linear(Role::ffn_down, Role::ffn_down_bias, layer);
  b.ffn.activation = c.activation;
  return b;
}

void build_panels(Model& model, const WeightSource& source, ThreadPool& pool, const LoadOptions& options) {
  int64_t total = 0, done = 0;
  model.for_each_matrix([&](const Matrix& m) { total += m.bytes(); });
  model.for_each_matrix([&](Matrix& m) {
    m.build_panels(pool);
    if (const TensorInfo* tensor = source.find(m.name())) source.give_back(*tensor);
    done += m.bytes();
    if (options.progress) options.progress(done, total);
  });
}

}  // namespace

ModelConfig read_model_config(const WeightSource& source) { return configure(family_of(source), source); }

Model load_model(std::shared_ptr<WeightSource> source, ThreadPool& pool, const LoadOptions& options) {
  const Family& family = family_of(*source);
  Model model;
  model.config = configure(family, *source);
  const Binder binder(*source, family.list_tensors(model.config), model);
  model.token_embedding = binder.matrix(Role::token_embedding);
  model.position_embedding = binder.matrix(Role::position_embedding);
  model.output_matrix = binder.matrix(Role::output_matrix);
  model.final_norm = binder.norm(model.config.final_norm, Role::output_norm, -1, Role::output_norm_bias);
  for (int layer = 0; layer < model.config.n_layers; layer++)
    model.blocks.push_back(bind_block(binder, model, layer));
  for (const RopeConfig& rope : model.config.ropes) model.rope_frequencies.push_back(rope_frequencies(rope));
  if (options.form == WeightForm::panels)
    build_panels(model, *source, pool, options);
  else
    model.source = std::move(source);
  return model;
}

}  // namespace liuli
