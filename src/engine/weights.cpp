// The parts of a model under names, in the order a token meets them.
#include <algorithm>

#include <fmt/format.h>

#include "core/dtype.h"
#include "engine/engine_parts.h"
#include "liuli/weights.h"

namespace liuli {
namespace {

// A weight where it lies: a matrix, or a vector of `n` numbers.
struct Named {
  std::string name;
  const Matrix* matrix = nullptr;
  const float* vector = nullptr;
  int64_t n = 0;
};

class Names {
 public:
  explicit Names(const Model& model) : model_(model), config_(model.config) {
    matrix("embed", model.token_embedding);
    matrix("pos_embed", model.position_embedding);
    matrix("type_embed", model.token_types);
    norm("embed_ln", model.embedding_norm, config_.d_model);
    const bool two_towers = config_.is_encoder_decoder();
    tower("encoder.blocks", model.encoder);
    tower(two_towers ? "decoder.blocks" : "blocks", model.blocks);
    norm("ln_final", model.final_norm, config_.d_model);
    linear("pooler", model.pooler);
    if (config_.has_output) matrix("unembed", model.output());
  }

  std::vector<Named> take() { return std::move(list_); }

 private:
  void vector(const std::string& name, const float* values, int64_t n) {
    if (values != nullptr) list_.push_back({name, nullptr, values, n});
  }
  void matrix(const std::string& name, const Matrix& m) {
    if (!m.empty()) list_.push_back({name + ".weight", &m});
  }
  void linear(const std::string& name, const Linear& part) {
    matrix(name, part.weight);
    vector(name + ".bias", part.bias, part.weight.d_out());
  }
  void norm(const std::string& name, const Norm& part, int64_t width) {
    vector(name + ".weight", part.gamma, width);
    vector(name + ".bias", part.beta, width);
  }

  void tower(const std::string& name, const std::vector<Block>& blocks) {
    for (size_t layer = 0; layer < blocks.size(); layer++)
      block(fmt::format("{}.{}.", name, layer), blocks[layer]);
  }

  // Pre-norm and post-norm share a name, as their points do: no block has both in one place.
  void block(const std::string& at, const Block& b) {
    const int64_t d = config_.d_model;
    norm(at + "ln1", b.attn_norm.before, d);
    std::visit([&](const auto& a) { attention(at + "attn.", a); }, b.attention);
    norm(at + "ln1_post", b.attn_norm.on_output, d);
    norm(at + "ln1", b.attn_norm.after_add, d);
    if (b.cross) attention(at + "cross_attn.", *b.cross);
    norm(at + "ln_cross", b.cross_norm.after_add, d);
    norm(at + "ln2", b.ffn_norm.before, d);
    std::visit([&](const auto& f) { feed_forward(at + "mlp.", f); }, b.ffn);
    norm(at + "ln2_post", b.ffn_norm.on_output, d);
    norm(at + "ln2", b.ffn_norm.after_add, d);
  }

  void attention(const std::string& at, const Attention& a) {
    linear(at + "q", a.q);
    linear(at + "k", a.k);
    linear(at + "v", a.v);
    const bool whole = a.qk_norm == QkNorm::whole;
    norm(at + "q_norm", a.q_norm, a.head_dim * (whole ? a.n_heads : 1));
    norm(at + "k_norm", a.k_norm, a.head_dim * (whole ? a.n_kv_heads : 1));
    linear(at + "o", a.o);
  }

  void attention(const std::string& at, const LatentAttention& a) {
    linear(at + "q_a", a.q_a);
    norm(at + "q_norm", a.q_norm, a.shape.q_lora_rank);
    linear(at + "q_b", a.q_b);
    linear(at + "kv_a", a.kv_a);
    norm(at + "kv_norm", a.kv_norm, a.shape.kv_lora_rank);
    for (size_t head = 0; head < a.k_up.size(); head++)
      matrix(fmt::format("{}k_up.{}", at, head), a.k_up[head]);
    for (size_t head = 0; head < a.v_up.size(); head++)
      matrix(fmt::format("{}v_up.{}", at, head), a.v_up[head]);
    linear(at + "o", a.o);
  }

  void feed_forward(const std::string& at, const FeedForward& f) {
    linear(at + "gate", f.gate);
    linear(at + "up", f.up);
    linear(at + "down", f.down);
  }

  void feed_forward(const std::string& at, const MixtureOfExperts& m) {
    linear(at + "router", m.router);
    vector(at + "router.choice_bias", m.choice_bias, m.shape.n_experts);
    for (size_t e = 0; e < m.experts.size(); e++)
      feed_forward(fmt::format("{}experts.{}.", at, e), m.experts[e]);
    feed_forward(at + "shared.", m.shared);
    vector(at + "shared_gate.weight", m.shared_gate, config_.d_model);
  }

  const Model& model_;
  const ModelConfig& config_;
  std::vector<Named> list_;
};

WeightInfo describe(const Named& w) {
  if (w.matrix == nullptr) return {w.name, {w.n}, "", "F32"};
  const Matrix& m = *w.matrix;
  return {w.name, {m.d_out(), m.d_in()}, m.name(), std::string(dtype_info(m.type()).name)};
}

[[noreturn]] void no_such_weight(const std::string& name, const std::vector<Named>& list) {
  std::string near;  // those of the same part of the model
  const std::string part = name.substr(0, name.rfind('.'));
  for (const Named& w : list)
    if (w.name.rfind(part, 0) == 0) near += (near.empty() ? "" : ", ") + w.name;
  throw Error(ErrorCode::not_found,
              fmt::format("no weight \"{}\"; {}", name,
                          near.empty() ? "names look like \"" + list.back().name + "\"" : "near: " + near));
}

}  // namespace

std::vector<WeightInfo> Engine::weights() const {
  config();
  std::vector<WeightInfo> infos;
  for (const Named& w : Names(*parts_->model).take()) infos.push_back(describe(w));
  return infos;
}

WeightValues Engine::weight(const std::string& name) const {
  config();
  const std::vector<Named> list = Names(*parts_->model).take();
  const auto found = std::find_if(list.begin(), list.end(), [&](const Named& w) { return w.name == name; });
  if (found == list.end()) no_such_weight(name, list);
  WeightValues decoded{describe(*found), {}};
  if (found->matrix == nullptr) {
    decoded.values.assign(found->vector, found->vector + found->n);
    return decoded;
  }
  const Matrix& m = *found->matrix;
  decoded.values.resize(static_cast<size_t>(m.d_out() * m.d_in()));
  parts_->runner->pool.parallel_for(m.d_out(), [&](int64_t begin, int64_t end, int) {
    std::vector<uint8_t> stored;
    for (int64_t row = begin; row < end; row++)
      m.decode_row(row, decoded.values.data() + row * m.d_in(), stored);
  });
  return decoded;
}

}  // namespace liuli
