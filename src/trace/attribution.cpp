#include "trace/attribution.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "liuli/error.h"

namespace liuli {
namespace {

using Vector = std::vector<double>;

double dot(const std::vector<float>& x, const Vector& u) {
  double sum = 0;
  for (size_t j = 0; j < u.size(); j++) sum += static_cast<double>(x[j]) * u[j];
  return sum;
}

Vector decoded_row(const Matrix& matrix, int64_t row) {
  std::vector<float> values(static_cast<size_t>(matrix.d_in()));
  std::vector<uint8_t> stored;
  matrix.decode_row(row, values.data(), stored);
  return {values.begin(), values.end()};
}

// Wᵀ u. Rows are taken in blocks of a fixed size, so that the sum does not depend on the number of threads.
Vector transposed_product(const Matrix& w, const Vector& u, ThreadPool& pool) {
  constexpr int64_t kBlock = 256;
  const int64_t n_blocks = (w.d_out() + kBlock - 1) / kBlock;
  const auto width = static_cast<size_t>(w.d_in());
  std::vector<Vector> partial(static_cast<size_t>(n_blocks), Vector(width));
  pool.parallel_for(n_blocks, [&](int64_t begin, int64_t end, int) {
    std::vector<float> row(width);
    std::vector<uint8_t> stored;
    for (int64_t i = begin * kBlock; i < std::min(end * kBlock, w.d_out()); i++) {
      w.decode_row(i, row.data(), stored);
      Vector& sum = partial[static_cast<size_t>(i / kBlock)];
      for (size_t j = 0; j < width; j++) sum[j] += static_cast<double>(row[j]) * u[static_cast<size_t>(i)];
    }
  });
  Vector sum(width);
  for (const Vector& part : partial)
    for (size_t j = 0; j < width; j++) sum[j] += part[j];
  return sum;
}

// A norm with its statistics held fixed is linear: y · u = x · direction + constant.
struct LinearNorm {
  Vector direction;
  double constant = 0, sigma = 1;
};

// x is the row that the norm saw.
LinearNorm freeze(const Norm& norm, const std::vector<float>& x, Vector u) {
  LinearNorm frozen{std::move(u)};
  if (norm.kind == NormKind::none) return frozen;
  const auto n = static_cast<double>(frozen.direction.size());
  double mean = 0, squares = 0;
  if (norm.kind == NormKind::layer) {
    for (const float v : x) mean += static_cast<double>(v);
    mean /= n;
  }
  for (const float v : x) squares += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean);
  frozen.sigma = std::sqrt(squares / n + static_cast<double>(norm.eps));
  double direction_mean = 0;
  for (size_t j = 0; j < frozen.direction.size(); j++) {
    if (norm.beta != nullptr) frozen.constant += static_cast<double>(norm.beta[j]) * frozen.direction[j];
    frozen.direction[j] *= (norm.gamma != nullptr ? static_cast<double>(norm.gamma[j]) : 1.0) / frozen.sigma;
    direction_mean += frozen.direction[j];
  }
  if (norm.kind == NormKind::layer)  // (x − mean(x)) · u = x · (u − mean(u))
    for (double& v : frozen.direction) v -= direction_mean / n;
  return frozen;
}

// One block's attention or feed-forward as it is followed back.
struct BranchPlace {
  int layer;
  double factor;   // what the stream is multiplied with afterwards
  std::string at;  // "blocks.3."
};

class Attributor {
 public:
  Attributor(const Model& model, ThreadPool& pool, const RunValues& values,
             const AttributionSettings& settings)
      : model_(model), pool_(pool), values_(values), settings_(settings) {}

  AttributionReport run() {
    report_.token = settings_.token;
    report_.against = settings_.against;
    report_.position = settings_.position;
    report_.soft_cap = model_.config.final_soft_cap;
    const LinearNorm final = output_direction();
    u_ = final.direction;
    report_.sigma = final.sigma;
    const auto n_layers = static_cast<int>(model_.blocks.size());
    report_.logit = dot(values_.of(fmt::format("blocks.{}.resid_post", n_layers - 1)), u_) + final.constant;
    double factor = 1;
    std::vector<double> after_attn, after_mlp;
    for (int layer = n_layers - 1; layer >= 0; layer--) {
      const auto scale = static_cast<double>(model_.blocks[static_cast<size_t>(layer)].residual_scale);
      after_mlp.insert(after_mlp.begin(), factor);
      after_attn.insert(after_attn.begin(), factor *= scale);
      factor *= scale;
    }
    for (const std::string& name : embedding_terms(model_.config))
      add(name, -1, -1, factor * dot(values_.of(name), u_));
    if (settings_.by == AttributeBy::token) from_tokens_.resize(static_cast<size_t>(settings_.position) + 1);
    for (int layer = 0; layer < n_layers; layer++) {
      const std::string at = fmt::format("blocks.{}.", layer);
      attention({layer, after_attn[static_cast<size_t>(layer)], at});
      feed_forward({layer, after_mlp[static_cast<size_t>(layer)], at});
    }
    for (size_t i = 0; i < from_tokens_.size(); i++)
      add(fmt::format("token {}", i), -1, static_cast<int>(i), from_tokens_[i]);
    if (final.constant != 0) add("ln_final.bias", -1, -1, final.constant);
    for (const AttributionTerm& term : report_.terms) report_.sum += term.value;
    return std::move(report_);
  }

 private:
  void add(const std::string& name, int layer, int index, double value) {
    report_.terms.push_back({name, layer, index, value});
  }
  // Constants are listed only where there are any.
  void add_constant(const std::string& name, int layer, double value) {
    if (value != 0) add(name, layer, -1, value);
  }

  LinearNorm output_direction() const {
    Vector u = decoded_row(model_.output(), settings_.token);
    if (settings_.against >= 0) {
      const Vector other = decoded_row(model_.output(), settings_.against);
      for (size_t j = 0; j < u.size(); j++) u[j] -= other[j];
    }
    return freeze(model_.final_norm,
                  values_.of(fmt::format("blocks.{}.resid_post", model_.blocks.size() - 1)), std::move(u));
  }

  // The direction before a norm on the branch's output; the norm's β is a term of its own.
  Vector before_norm(const BranchPlace& place, const Norm& norm, const char* raw, const char* site) {
    Vector u = u_;
    for (double& v : u) v *= place.factor;
    if (norm.kind == NormKind::none) return u;
    const LinearNorm frozen = freeze(norm, values_.of(place.at + raw), std::move(u));
    add_constant(place.at + site + ".bias", place.layer, frozen.constant);
    return frozen.direction;
  }

  double bias(const Linear& linear, const Vector& u) const {
    double sum = 0;
    for (size_t j = 0; linear.bias != nullptr && j < u.size(); j++)
      sum += static_cast<double>(linear.bias[j]) * u[j];
    return sum;
  }

  void attention(const BranchPlace& place) {
    const Block& b = model_.blocks[static_cast<size_t>(place.layer)];
    if (settings_.by != AttributeBy::head && settings_.by != AttributeBy::token) {
      add(place.at + "attn_out", place.layer, -1, place.factor * dot(values_.of(place.at + "attn_out"), u_));
      return;
    }
    const Vector u = before_norm(place, b.attn_norm.on_output, "attn.out_proj", "ln1_post");
    const Linear& o = std::visit([](const auto& a) -> const Linear& { return a.o; }, b.attention);
    const Vector v = transposed_product(o.weight, u, pool_);
    if (settings_.by == AttributeBy::head)
      heads(place, v);
    else
      tokens(place, v);
    add_constant(place.at + "attn.o.bias", place.layer, bias(o, u));
  }

  void heads(const BranchPlace& place, const Vector& v) {
    const std::vector<float>& z = values_.of(place.at + "attn.z");
    const size_t n_heads = static_cast<size_t>(model_.config.n_heads), width = v.size() / n_heads;
    for (size_t head = 0; head < n_heads; head++) {
      double sum = 0;
      for (size_t j = head * width; j < (head + 1) * width; j++) sum += static_cast<double>(z[j]) * v[j];
      add(fmt::format("{}attn.head.{}", place.at, head), place.layer, static_cast<int>(head), sum);
    }
  }

  // Σ over heads of pattern[head, position, source] · v[source, its kv head] · direction.
  void tokens(const BranchPlace& place, const Vector& direction) {
    const std::vector<float>& pattern = values_.of(place.at + "attn.pattern");
    const std::vector<float>& values = values_.of(place.at + "attn.v");
    const auto n_heads = static_cast<size_t>(model_.config.n_heads),
               n_kv_heads = static_cast<size_t>(model_.config.n_kv_heads);
    const size_t width = direction.size() / n_heads, n_keys = pattern.size() / n_heads;
    for (size_t head = 0; head < n_heads; head++)
      for (size_t source = 0; source < from_tokens_.size(); source++) {
        const size_t kv_head = head / (n_heads / n_kv_heads);
        const float* v = values.data() + (source * n_kv_heads + kv_head) * width;
        double sum = 0;
        for (size_t j = 0; j < width; j++) sum += static_cast<double>(v[j]) * direction[head * width + j];
        from_tokens_[source] += static_cast<double>(pattern[head * n_keys + source]) * sum;
      }
  }

  void feed_forward(const BranchPlace& place) {
    const Block& b = model_.blocks[static_cast<size_t>(place.layer)];
    if (settings_.by != AttributeBy::neuron) {
      add(place.at + "mlp_out", place.layer, -1, place.factor * dot(values_.of(place.at + "mlp_out"), u_));
      return;
    }
    const Vector u = before_norm(place, b.ffn_norm.on_output, "mlp.out", "ln2_post");
    if (const auto* dense = std::get_if<FeedForward>(&b.ffn))
      neurons(place, *dense, "mlp.", 1, u);
    else
      experts(place, std::get<MixtureOfExperts>(b.ffn), u);
  }

  void neurons(const BranchPlace& place, const FeedForward& f, const std::string& part, double weight,
               const Vector& u) {
    const Vector v = transposed_product(f.down.weight, u, pool_);
    const std::vector<float>& post = values_.of(place.at + part + "post");
    for (size_t j = 0; j < v.size(); j++)
      add(fmt::format("{}{}post[{}]", place.at, part, j), place.layer, static_cast<int>(j),
          weight * static_cast<double>(post[j]) * v[j]);
    add_constant(place.at + part + "down.bias", place.layer, weight * bias(f.down, u));
  }

  void experts(const BranchPlace& place, const MixtureOfExperts& m, const Vector& u) {
    const std::vector<float>&ids = values_.of(place.at + "mlp.expert_ids"),
          &weights = values_.of(place.at + "mlp.expert_weights");
    for (size_t k = 0; k < ids.size(); k++) {
      const auto expert = static_cast<size_t>(ids[k]);
      neurons(place, m.experts[expert], fmt::format("mlp.experts.{}.", expert),
              static_cast<double>(weights[k]), u);
    }
    if (m.shared.up.weight.empty()) return;
    double gate = 1;
    if (m.shared_gate != nullptr) {
      const std::vector<float>& h = values_.of(place.at + "ln2.out");
      double logit = 0;
      for (size_t j = 0; j < h.size(); j++)
        logit += static_cast<double>(m.shared_gate[j]) * static_cast<double>(h[j]);
      gate = 1 / (1 + std::exp(-logit));
    }
    neurons(place, m.shared, "mlp.shared.", gate, u);
  }

  const Model& model_;
  ThreadPool& pool_;
  const RunValues& values_;
  const AttributionSettings& settings_;
  AttributionReport report_;
  Vector u_;  // the final norm's direction
  std::vector<double> from_tokens_;
};

}  // namespace

RunValues::RunValues(std::vector<TracedTensor> tensors) {
  for (TracedTensor& tensor : tensors)
    values_[tensor.name.substr(0, tensor.name.find('['))] = std::move(tensor.values);
}

const std::vector<float>& RunValues::of(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end())
    throw Error(ErrorCode::unsupported, fmt::format("this run does not show {}", name));
  return found->second;
}

void require_additive_stream(const Model& model, const char* work) {
  const ModelConfig& c = model.config;
  const bool post_norm = std::any_of(c.layers.begin(), c.layers.end(), [](const LayerPlan& l) {
    return l.attn_norm.after_add != NormKind::none || l.ffn_norm.after_add != NormKind::none ||
           l.cross_norm.after_add != NormKind::none;
  });
  if (post_norm)
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} is not possible for {} models: they normalise the residual stream itself after every "
                    "addition (post-norm), so what a block added is rescaled by every later one and the last "
                    "stream is no sum of the parts",
                    work, c.family));
  if (c.is_encoder_decoder())
    throw Error(ErrorCode::unsupported, fmt::format("{} is not possible for encoder-decoders", work));
}

std::vector<std::string> embedding_terms(const ModelConfig& config) {
  if (config.embedding_norm != NormKind::none) return {"embed_ln.out"};
  std::vector<std::string> names = {"embed"};
  if (config.positions == PositionTable::learned) names.push_back("pos_embed");
  if (config.n_token_types > 0) names.push_back("type_embed");
  return names;
}

std::vector<std::string> attribution_points(const Model& model, AttributeBy by, int position) {
  const ModelConfig& c = model.config;
  std::vector<std::string> rows = embedding_terms(c);
  const bool in_attention = by == AttributeBy::head || by == AttributeBy::token;
  if (!in_attention) rows.push_back("blocks.*.attn_out");
  if (in_attention) rows.push_back("blocks.*.attn.out_proj");
  if (by == AttributeBy::head) rows.push_back("blocks.*.attn.z");
  if (by != AttributeBy::neuron) rows.push_back("blocks.*.mlp_out");
  rows.push_back(fmt::format("blocks.{}.resid_post", c.n_layers - 1));
  if (by == AttributeBy::neuron) {
    rows.insert(rows.end(), {"blocks.*.mlp.out", "blocks.*.mlp*post"});
    if (c.experts.n_experts > 0)
      rows.insert(rows.end(), {"blocks.*.mlp.expert_ids", "blocks.*.mlp.expert_weights", "blocks.*.ln2.out"});
  }
  std::vector<std::string> points;
  for (const std::string& row : rows) points.push_back(fmt::format("{}[{}]", row, position));
  if (by == AttributeBy::token) {
    points.push_back(fmt::format("blocks.*.attn.pattern[:,{}]", position));
    points.push_back("blocks.*.attn.v");
  }
  return points;
}

AttributionReport attribute_values(const Model& model, ThreadPool& pool, const RunValues& values,
                                   const AttributionSettings& settings) {
  return Attributor(model, pool, values, settings).run();
}

}  // namespace liuli
