#include "model/load.h"

#include <charconv>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "core/check.h"
#include "liuli/error.h"
#include "model/bind_latent.h"
#include "model/panel_cache.h"
#include "model/prompt_chunk.h"
#include "ops/rope.h"

namespace liuli {
namespace {

const Family& family_of(const WeightSource& source) {
  const char* key = source.naming() == Naming::gguf ? "general.architecture" : "model_type";
  const auto architecture = source.metadata().text(key);
  if (!architecture)
    throw Error(ErrorCode::corrupt_file, fmt::format("{}: key {} is missing", source.path(), key));
  const Family* family = find_family(source.naming(), *architecture);
  if (family == nullptr)
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: {} \"{}\" is not supported; Liuli runs {}", source.path(), key,
                            *architecture, family_names(source.naming())));
  return *family;
}

ModelConfig configure(const Family& family, const WeightSource& source) {
  ConfigReader reader(source, family.name);
  ModelConfig config = family.read_config(reader);
  reader.refuse_unread();
  return config;
}

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

void bind_qkv(const Binder& binder, const ModelConfig& c, Binder::Where at, Attention& a) {
  if (!binder.has(Role::attn_qkv, at)) {
    a.q = binder.linear(Role::attn_q, Role::attn_q_bias, at);
    a.k = binder.linear(Role::attn_k, Role::attn_k_bias, at);
    a.v = binder.linear(Role::attn_v, Role::attn_v_bias, at);
    return;
  }
  const float* bias = binder.vector(Role::attn_qkv_bias, at);
  const int64_t q = c.n_heads * c.head_dim, kv = c.n_kv_heads * c.head_dim;
  auto part = [&](int64_t first, int64_t n) {
    return Linear{binder.matrix_rows(Role::attn_qkv, at, first, n), bias == nullptr ? nullptr : bias + first};
  };
  a.q = part(0, q);
  a.k = part(q, kv);
  a.v = part(q + kv, kv);
}

Attention bind_attention(const Binder& binder, Model& model, const LayerPlan& plan, Binder::Where at) {
  const ModelConfig& c = model.config;
  Attention a;
  bind_qkv(binder, c, at, a);
  a.o = binder.linear(Role::attn_o, Role::attn_o_bias, at);
  a.qk_norm = c.qk_norm;
  if (c.qk_norm != QkNorm::none) {
    a.q_norm = binder.norm(NormKind::rms, Role::attn_q_norm, at);
    a.k_norm = binder.norm(NormKind::rms, Role::attn_k_norm, at);
  }
  a.n_heads = c.n_heads;
  a.n_kv_heads = c.n_kv_heads;
  a.head_dim = a.value_dim = c.head_dim;
  a.rope = plan.rope;
  a.sliding_window = plan.sliding_window;
  a.scale = static_cast<float>(c.attention_scale);
  a.soft_cap = static_cast<float>(c.attention_soft_cap);
  a.causal = c.causal && !at.encoder;
  a.key_offset = key_offset(model, a.k.bias, plan.rope);
  return a;
}

FeedForward bind_feed_forward(const Binder& binder, const ModelConfig& c, Binder::Where at) {
  FeedForward f;
  f.activation = c.activation;
  f.down = binder.linear(Role::ffn_down, Role::ffn_down_bias, at);
  if (binder.has(Role::ffn_gate_up, at)) {
    f.gate.weight = binder.matrix_rows(Role::ffn_gate_up, at, 0, c.d_ff);
    f.up.weight = binder.matrix_rows(Role::ffn_gate_up, at, c.d_ff, c.d_ff);
    return f;
  }
  if (c.gated_ffn) f.gate = binder.linear(Role::ffn_gate, Role::ffn_gate_bias, at);
  f.up = binder.linear(Role::ffn_up, Role::ffn_up_bias, at);
  return f;
}

MixtureOfExperts bind_experts(const Binder& binder, const ModelConfig& c, Binder::Where at) {
  MixtureOfExperts m;
  m.shape = c.experts;
  m.router.weight = binder.matrix(Role::router, at);
  m.choice_bias = binder.vector(Role::router_choice_bias, at);
  for (int e = 0; e < c.experts.n_experts; e++) {
    FeedForward& expert = m.experts.emplace_back();
    expert.activation = c.activation;
    expert.gate.weight = binder.expert_matrix(Role::expert_gate, at, e);
    expert.up.weight = binder.expert_matrix(Role::expert_up, at, e);
    expert.down.weight = binder.expert_matrix(Role::expert_down, at, e);
  }
  m.shared.activation = c.activation;
  m.shared.gate.weight = binder.matrix(Role::shared_gate, at);
  m.shared.up.weight = binder.matrix(Role::shared_up, at);
  m.shared.down.weight = binder.matrix(Role::shared_down, at);
  m.shared_gate = binder.vector(Role::shared_expert_gate, at);
  return m;
}

BlockNorms bind_attention_norms(const Binder& binder, const NormSlots& slots, Binder::Where at) {
  return {binder.norm(slots.before, Role::attn_norm, at, Role::attn_norm_bias),
          binder.norm(slots.on_output, Role::attn_output_norm, at),
          binder.norm(slots.after_add, Role::attn_after_norm, at, Role::attn_after_norm_bias)};
}

// Queries of the decoder, keys and values of the encoder's output: no positions, nothing hidden.
std::unique_ptr<Attention> bind_cross_attention(const Binder& binder, Model& model, const LayerPlan& plan,
                                                Binder::Where at) {
  const ModelConfig& c = model.config;
  auto a = std::make_unique<Attention>();
  a->q = binder.linear(Role::cross_q, Role::cross_q_bias, at);
  a->k = binder.linear(Role::cross_k, Role::cross_k_bias, at);
  a->v = binder.linear(Role::cross_v, Role::cross_v_bias, at);
  a->o = binder.linear(Role::cross_o, Role::cross_o_bias, at);
  a->n_heads = c.n_heads;
  a->n_kv_heads = c.n_kv_heads;
  a->head_dim = a->value_dim = c.head_dim;
  a->scale = static_cast<float>(c.attention_scale);
  a->causal = false;
  a->key_offset = key_offset(model, a->k.bias, plan.rope);
  return a;
}

BlockNorms bind_ffn_norms(const Binder& binder, const NormSlots& slots, Binder::Where at) {
  return {binder.norm(slots.before, Role::ffn_norm, at, Role::ffn_norm_bias),
          binder.norm(slots.on_output, Role::ffn_output_norm, at),
          binder.norm(slots.after_add, Role::ffn_after_norm, at, Role::ffn_after_norm_bias)};
}

Block bind_block(const Binder& binder, Model& model, const LayerPlan& plan, Binder::Where at) {
  Block b;
  b.residual_scale = static_cast<float>(model.config.residual_scale);
  b.attn_norm = bind_attention_norms(binder, plan.attn_norm, at);
  if (model.config.is_latent())
    b.attention = bind_latent_attention(binder, model.config, plan, at);
  else
    b.attention = bind_attention(binder, model, plan, at);
  if (plan.cross_attention) {
    b.cross = bind_cross_attention(binder, model, plan, at);
    b.cross_norm.after_add =
        binder.norm(plan.cross_norm.after_add, Role::cross_after_norm, at, Role::cross_after_norm_bias);
  }
  b.ffn_norm = bind_ffn_norms(binder, plan.ffn_norm, at);
  if (plan.routed)
    b.ffn = bind_experts(binder, model.config, at);
  else
    b.ffn = bind_feed_forward(binder, model.config, at);
  return b;
}

std::vector<Block> bind_tower(const Binder& binder, Model& model, const std::vector<LayerPlan>& layers,
                              bool encoder) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < layers.size(); i++)
    blocks.push_back(bind_block(binder, model, layers[i], {static_cast<int>(i), encoder}));
  return blocks;
}

// All panels lie in one block of huge pages: matrices of a few hundred KiB (small models', experts') would otherwise get
// pages of 4 KiB, whose first touch costs more than packing.
class PanelMemory {
 public:
  explicit PanelMemory(size_t bytes) : block_(std::make_shared<AlignedBuffer>(bytes)) {}
  std::shared_ptr<uint8_t> take(size_t bytes) {
    uint8_t* at = block_->data() + used_;
    used_ += bytes;
    return {block_, at};
  }

 private:
  std::shared_ptr<AlignedBuffer> block_;
  size_t used_ = 0;
};

void build_panels(Model& model, const WeightSource& source, ThreadPool& pool, const LoadOptions& options) {
  int64_t total = 0, done = 0;
  size_t bytes = 0;
  model.for_each_matrix([&](const Matrix& m) {
    total += m.bytes();
    bytes += m.run_bytes();
  });
  PanelMemory memory(bytes);
  const RowsCopied give_back = [&](const uint8_t* rows, int64_t n) { source.give_back_bytes(rows, n); };
  model.for_each_matrix([&](Matrix& m) {
    m.build_panels(pool, memory.take(m.run_bytes()), give_back);
    if (const TensorInfo* tensor = source.find(m.name())) source.give_back(*tensor);
    done += m.bytes();
    if (options.progress) options.progress(done, total);
  });
}

// A panel file that fits. One that the user named must; one that lies beside the model may be left over.
std::optional<PanelFile> find_panels(Model& model, const WeightSource& source, ThreadPool& pool,
                                     const LoadOptions& options) {
  if (options.panel_file == kNoPanelFile) return std::nullopt;
  if (!options.panel_file.empty()) return open_panels(model, source, pool, options.panel_file);
  const std::string path = panel_path(source);
  std::error_code ignored;
  if (source.files().empty() || !std::filesystem::exists(path, ignored)) return std::nullopt;
  try {
    return open_panels(model, source, pool, path);
  } catch (const Error& e) {
    model.panel_file_refused = e.what();
    return std::nullopt;
  }
}

}  // namespace

ModelConfig read_model_config(const WeightSource& source) { return configure(family_of(source), source); }

namespace {
CacheType cache_form(const Model& model) {
  bool some_f16 = false, others = false;
  model.for_each_matrix([&](const Matrix& m) {
    some_f16 = some_f16 || m.type() == DType::f16;
    others = others || (m.type() != DType::f16 && m.type() != DType::f32);
  });
  return some_f16 && !others ? CacheType::f16 : CacheType::bf16;
}

// Everything but the numbers' final form: tensors found, checked and put in their places.
Model bind_model(const ModelConfig& config, const Family& family, const WeightSource& source) {
  Model model;
  model.config = config;
  const Binder binder(source, family, model);
  model.token_embedding = binder.matrix(Role::token_embedding);
  model.position_embedding = binder.matrix(Role::position_embedding);
  model.token_types = binder.matrix(Role::token_types);
  model.embedding_norm =
      binder.norm(config.embedding_norm, Role::embedding_norm, {}, Role::embedding_norm_bias);
  model.output_matrix = binder.matrix(Role::output_matrix);
  model.final_norm = binder.norm(config.final_norm, Role::output_norm, {}, Role::output_norm_bias);
  model.pooler = binder.linear(Role::pooler, Role::pooler_bias, {});
  model.encoder = bind_tower(binder, model, config.encoder_layers, true);
  model.blocks = bind_tower(binder, model, config.layers, false);
  for (const RopeConfig& rope : config.ropes) model.rope_frequencies.push_back(rope_frequencies(rope));
  model.cache_form = cache_form(model);
  model.prompt_chunk = prompt_chunk(model);
  return model;
}
}  // namespace

Model load_model(std::shared_ptr<WeightSource> source, ThreadPool& pool, const LoadOptions& options) {
  const Family& family = family_of(*source);
  Model model = bind_model(configure(family, *source), family, *source);
  if (options.form == WeightForm::panels) {
    if (const auto panels = find_panels(model, *source, pool, options))
      map_panels(model, *panels, pool, options.progress);
    else
      build_panels(model, *source, pool, options);
  } else {
    model.for_each_matrix([](Matrix& m) { m.hold_rows(); });
    model.source = std::move(source);
  }
  return model;
}

void write_panel_file(const WeightSource& source, ThreadPool& pool, const PackOptions& options) {
  const Family& family = family_of(source);
  Model model = bind_model(configure(family, source), family, source);
  if (source.files().empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: is no file that could be packed", source.path()));
  const std::string path = options.path.empty() ? panel_path(source) : options.path;
  for (const WeightFile& file : source.files()) {
    std::error_code ignored;
    if (std::filesystem::equivalent(path, file.path, ignored))
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: is the model; name another output", path));
  }
  write_panels(model, source, pool, path, options.start, options.progress);
}

std::vector<std::string> load_notices(const Model& model) {
  std::map<int64_t, int64_t> tensors;  // by layers that the model does not have
  for (const std::string& name : model.unused_tensors)
    for (const std::string_view before : {"layers.", "blk."})
      if (const size_t at = name.find(before); at != std::string::npos) {
        int64_t layer = -1;
        std::from_chars(name.data() + at + before.size(), name.data() + name.size(), layer);
        if (layer >= model.config.n_layers) tensors[layer]++;
      }
  std::vector<std::string> notices;
  for (const auto& [layer, n] : tensors)
    notices.push_back(fmt::format(
        "{} tensors of layer {}, past the model's {} layers (multi-token prediction), are not used", n, layer,
        model.config.n_layers));
  if (!model.panel_file_refused.empty())
    notices.push_back(fmt::format("the weights were packed anew: {}", model.panel_file_refused));
  return notices;
}

Model bind_trained_model(const ModelConfig& config, std::shared_ptr<WeightSource> weights) {
  LIULI_CHECK(weights->naming() == Naming::trained);
  Model model = bind_model(config, family_of(config), *weights);
  model.for_each_matrix([](Matrix& m) { m.hold_rows(); });
  model.source = std::move(weights);
  return model;
}

}  // namespace liuli
