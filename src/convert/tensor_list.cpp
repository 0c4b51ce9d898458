#include "convert/tensor_list.h"

#include <fmt/core.h>

namespace liuli {
namespace {

using P = ModelPart;
using F = Filling;
using Shape = std::vector<int64_t>;

/// Collects the tensors of one model; `prefix` is that of the layer at hand.
class List {
 public:
  explicit List(const KnownModel& model) : m_(model), f_(*model.family) {}

  std::vector<ModelTensor> take() { return std::move(tensors_); }
  void enter(std::string prefix) { prefix_ = std::move(prefix); }

  void add(const std::string& name, P part, Shape shape, F filling = F::weights, double active = 1) {
    tensors_.push_back({prefix_ + name, std::move(shape), part, filling, active});
  }
  void norm(const std::string& name, int64_t width) {
    add(name + ".weight", P::norms, {width}, F::gain);
    if (f_.layer_norm) add(name + ".bias", P::norms, {width}, F::shift);
  }
  void linear(const std::string& name, P part, int64_t d_out, int64_t d_in, bool bias) {
    add(name + ".weight", part, {d_out, d_in});
    if (bias) add(name + ".bias", part, {d_out}, F::shift);
  }

  void embeddings();
  void layer(int64_t index, bool cross);
  void head();

 private:
  void attention();
  void latent_attention();
  void plain_attention(const std::string& prefix, bool cross);
  void qk_norms();
  void feed_forward();
  void expert_layer();

  const KnownModel& m_;
  const KnownFamily& f_;
  std::string prefix_;
  std::vector<ModelTensor> tensors_;
};

void List::embeddings() {
  add("token_embd.weight", P::embedding, {m_.vocab_size, m_.d_model});
  if (f_.learned_positions) add("position_embd.weight", P::positions, {m_.context, m_.d_model});
  if (m_.n_token_types > 0) {
    add("token_types.weight", P::positions, {m_.n_token_types, m_.d_model});
    norm("token_embd_norm", m_.d_model);
  }
}

/// Where BERT and the 2017 Transformer normalise the sum, GGUF has names of its own.
void List::layer(int64_t index, bool cross) {
  const bool of_sum = f_.layer_norm && f_.norm_after;
  if (f_.norm_before) norm("attn_norm", m_.d_model);
  attention();
  if (f_.norm_after) norm(of_sum ? "attn_output_norm" : "post_attention_norm", m_.d_model);
  if (cross) {
    plain_attention("cross_attn", true);
    norm("cross_attn_output_norm", m_.d_model);
  }
  if (f_.norm_before) norm("ffn_norm", m_.d_model);
  if (m_.dense(index)) feed_forward();
  if (!m_.dense(index)) expert_layer();
  if (f_.norm_after) norm(of_sum ? "layer_output_norm" : "post_ffw_norm", m_.d_model);
}

void List::attention() {
  if (m_.latent != nullptr) return latent_attention();
  plain_attention("attn", false);
  qk_norms();
}

void List::plain_attention(const std::string& prefix, bool cross) {
  const bool all = f_.biases == KnownFamily::Biases::all, qkv = all || f_.biases == KnownFamily::Biases::qkv;
  const int64_t q = m_.n_heads * m_.head_dim, kv = m_.n_kv_heads * m_.head_dim, d = m_.d_model;
  const auto part = [&](P plain) { return cross ? P::cross_attention : plain; };
  if (f_.fused_qkv) {
    linear(prefix + "_qkv", P::attn_qkv, q + 2 * kv, d, qkv);
  } else {
    linear(prefix + "_q", part(P::attn_q), q, d, qkv);
    linear(prefix + "_k", part(P::attn_k), kv, d, qkv);
    linear(prefix + "_v", part(P::attn_v), kv, d, qkv);
  }
  linear(prefix + "_output", part(P::attn_output), d, q, all);
}

void List::qk_norms() {
  if (f_.qk_norm == KnownFamily::QkNorm::none) return;
  const bool whole = f_.qk_norm == KnownFamily::QkNorm::whole;
  norm("attn_q_norm", whole ? m_.n_heads * m_.head_dim : m_.head_dim);
  norm("attn_k_norm", whole ? m_.n_kv_heads * m_.head_dim : m_.head_dim);
}

/// The joint up-projection of k and v is stored as two stacks, one matrix per head: k's transposed, so that both
/// forms of the product read rows.
void List::latent_attention() {
  const KnownLatent& l = *m_.latent;
  linear("attn_q_a", P::q_down, l.q_lora_rank, m_.d_model, false);
  norm("attn_q_a_norm", l.q_lora_rank);
  linear("attn_q_b", P::q_up, m_.n_heads * m_.key_width(), l.q_lora_rank, false);
  linear("attn_kv_a_mqa", P::kv_down, l.kv_lora_rank + l.qk_rope_head_dim, m_.d_model, false);
  norm("attn_kv_a_norm", l.kv_lora_rank);
  add("attn_k_b.weight", P::k_up, {m_.n_heads, l.kv_lora_rank, l.qk_nope_head_dim});
  add("attn_v_b.weight", P::v_up, {m_.n_heads, l.v_head_dim, l.kv_lora_rank});
  linear("attn_output", P::attn_output, m_.d_model, m_.n_heads * l.v_head_dim, false);
}

void List::feed_forward() {
  const bool bias = f_.biases == KnownFamily::Biases::all;
  if (f_.gated) linear("ffn_gate", P::ffn, m_.d_ff, m_.d_model, bias);
  linear("ffn_up", P::ffn, m_.d_ff, m_.d_model, bias);
  linear("ffn_down", P::ffn, m_.d_model, m_.d_ff, bias);
}

void List::expert_layer() {
  const KnownExperts& e = m_.experts;
  const double active = static_cast<double>(e.n_experts_active) / static_cast<double>(e.n_experts);
  add("ffn_gate_inp.weight", P::router, {e.n_experts, m_.d_model});
  if (e.sigmoid) add("exp_probs_b.bias", P::router, {e.n_experts}, F::shift);
  add("ffn_gate_exps.weight", P::experts, {e.n_experts, e.d_ff, m_.d_model}, F::weights, active);
  add("ffn_up_exps.weight", P::experts, {e.n_experts, e.d_ff, m_.d_model}, F::weights, active);
  add("ffn_down_exps.weight", P::experts, {e.n_experts, m_.d_model, e.d_ff}, F::weights, active);
  const int64_t shared = e.n_shared * e.d_ff;
  if (shared == 0) return;
  linear("ffn_gate_shexp", P::shared_experts, shared, m_.d_model, false);
  linear("ffn_up_shexp", P::shared_experts, shared, m_.d_model, false);
  linear("ffn_down_shexp", P::shared_experts, m_.d_model, shared, false);
}

void List::head() {
  if (f_.final_norm) norm("output_norm", m_.d_model);
  if (!m_.tied_embeddings) add("output.weight", P::output, {m_.vocab_size, m_.d_model});
  if (m_.pooler) linear("pooler", P::pooler, m_.d_model, m_.d_model, true);
  if (m_.rope_scaling != nullptr) add("rope_freqs.weight", P::norms, {m_.head_dim / 2}, F::divisors);
}

}  // namespace

const char* part_name(ModelPart part) {
  static constexpr const char* kNames[] = {"embedding",
                                           "position tables",
                                           "attention q",
                                           "attention k",
                                           "attention v",
                                           "attention qkv",
                                           "attention q down",
                                           "attention q up",
                                           "attention kv down",
                                           "attention k up",
                                           "attention v up",
                                           "attention kv up",
                                           "attention output",
                                           "cross-attention",
                                           "feed-forward",
                                           "router",
                                           "experts",
                                           "shared experts",
                                           "norms",
                                           "pooler",
                                           "output"};
  return kNames[static_cast<size_t>(part)];
}

int64_t ModelTensor::elements() const {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

bool ModelTensor::multiplies(const KnownModel& model) const {
  if (shape.size() < 2 || part == P::positions || part == P::pooler) return false;
  return part != P::embedding || (model.tied_embeddings && model.family->decoder);
}

MixModel mix_model_of(const KnownModel& model) {
  const bool shares = model.latent == nullptr;  // latents have no heads of their own
  return {model.n_layers, shares ? model.n_heads / model.n_kv_heads : 1, model.experts.n_experts,
          model.tied_embeddings, false};
}

std::vector<ModelTensor> tensor_list(const KnownModel& model) {
  List list(model);
  list.embeddings();
  for (int64_t i = 0; i < model.n_encoder_layers; i++) {
    list.enter(fmt::format("enc.blk.{}.", i));
    list.layer(i, false);
  }
  const bool cross = model.n_encoder_layers > 0;
  for (int64_t i = 0; i < model.n_layers; i++) {
    list.enter(fmt::format("{}blk.{}.", cross ? "dec." : "", i));
    list.layer(i, cross);
  }
  list.enter("");
  list.head();
  return list.take();
}

}  // namespace liuli
