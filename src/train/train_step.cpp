#include "train/train_step.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/check.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/norm.h"

namespace liuli {
namespace {

constexpr int64_t kLogitRows = 256;

OpContext context(Runner& runner, Arena& scratch) {
  OpContext c = make_context(runner, ProductClass::f32);
  return {c.kernels, c.rows, c.attention, c.pool, scratch, ProductClass::f32};
}

// The stream as it leaves a tower's last block.
Rows stream_after(const std::vector<Block>& blocks, const Saved& saved, Stack stack) {
  const auto last = static_cast<int>(blocks.size()) - 1;
  const bool post_norm = blocks.back().ffn_norm.after_add.kind != NormKind::none;
  return saved.at(post_norm ? Point::normalized_resid_post : Point::resid_post, last, stack);
}

// Keeps only what comes out: an evaluation needs no way back.
class LastRows final : public Probe {
 public:
  LastRows(const std::vector<Block>& blocks, Saved& saved) : blocks_(blocks), saved_(saved) {}
  bool wants(const Place& place) const override {
    const bool post_norm = blocks_.back().ffn_norm.after_add.kind != NormKind::none;
    return place.layer + 1 == static_cast<int>(blocks_.size()) && place.stack != Stack::encoder &&
           place.point == (post_norm ? Point::normalized_resid_post : Point::resid_post);
  }
  void see(const ProbedValue& value) override { saved_.see(value); }
  bool sees_batches() const override { return true; }

 private:
  const std::vector<Block>& blocks_;
  Saved& saved_;
};

Stack main_stack(const ModelConfig& c) { return c.is_encoder_decoder() ? Stack::decoder : Stack::blocks; }

}  // namespace

void TrainStep::place(const std::vector<Example>& batch) {
  batch_ = batch;
  sequences_.clear();
  ids_.clear();
  positions_.clear();
  targets_.clear();
  types_.clear();
  caches_.clear();
  for (const Example& e : batch_) {
    LIULI_CHECK(!e.input.empty() && (e.target.empty() || e.target.size() == e.input.size()));
    LIULI_CHECK(e.types.empty() || e.types.size() == e.input.size());
    const int n = static_cast<int>(e.input.size());
    sequences_.push_back({nullptr, static_cast<int64_t>(ids_.size()), n, 0, n});
    ids_.insert(ids_.end(), e.input.begin(), e.input.end());
    targets_.insert(targets_.end(), e.target.begin(), e.target.end());
    targets_.resize(ids_.size(), kIgnoredTarget);
    types_.insert(types_.end(), e.types.begin(), e.types.end());
    types_.resize(ids_.size());
    for (int i = 0; i < n; i++) positions_.push_back(i);
  }
}

Rows TrainStep::forward(const std::vector<Example>& batch, bool with_saved) {
  place(batch);
  saved_.clear();
  scratch_.release({});
  const ModelConfig& c = model_.config;
  LIULI_CHECK(!c.is_encoder_decoder() || batch_.size() == 1);
  LastRows last(model_.blocks, saved_);
  StepOptions options;
  options.product_class = ProductClass::f32;
  options.listener = with_saved ? static_cast<Probe*>(&saved_) : &last;
  options.no_logits = true;
  const auto& attention = attention_kernels(ProductClass::f32);
  std::vector<SequenceInput> inputs;
  for (const Example& e : batch_) {
    SequenceInput input{&caches_.emplace_back(cache_shape(c), attention), e.input};
    input.token_types = e.types;
    if (c.is_encoder_decoder()) {
      input.source = &caches_.emplace_back(source_cache_shape(c), attention);
      encode_source(model_, runner_, e.source, *input.source, options);
    }
    inputs.push_back(input);
  }
  transformer_forward(model_, runner_, inputs, options);
  caches_.clear();
  return output_ = stream_after(model_.blocks, saved_, main_stack(c));
}

Rows TrainStep::new_rows_like_output() {
  Rows dx = make_rows(scratch_, output_.n, output_.width);
  for (int64_t i = 0; i < dx.n; i++) std::fill_n(dx.row(i), dx.width, 0.0f);
  return dx;
}

CrossEntropy TrainStep::loss(const LossSettings& settings, GradientMap* gradients, Rows* dx) {
  LIULI_CHECK(model_.config.has_output && (gradients == nullptr) == (dx == nullptr));
  OpContext c = context(runner_, scratch_);
  if (dx != nullptr) *dx = new_rows_like_output();
  const auto counted =
      std::count_if(targets_.begin(), targets_.end(), [](int t) { return t != kIgnoredTarget; });
  const double divisor =
      settings.divisor > 0 ? settings.divisor : static_cast<double>(std::max<ptrdiff_t>(counted, 1));
  const auto cap = static_cast<float>(model_.config.final_soft_cap);
  const Matrix& w = model_.output();
  const Norm& norm = model_.final_norm;
  CrossEntropy total;
  for (int64_t at = 0; at < output_.n; at += kLogitRows) {
    const Arena::Scope scope(scratch_);
    const int64_t n = std::min(kLogitRows, output_.n - at);
    const std::span<const int> targets(targets_.data() + at, static_cast<size_t>(n));
    const Rows x = output_.slice(at, n);
    Rows h = x, logits = make_rows(scratch_, n, model_.config.vocab_size);
    if (norm.kind != NormKind::none) {
      h = make_rows(scratch_, n, x.width);
      norm_forward(c, norm, x, h);
    }
    linear_forward(c, h, {LinearJob{&w, nullptr, logits}});
    if (cap > 0) for_each_row(c, n, [&](int64_t i) { c.rows.soft_cap(logits.row(i), cap, logits.width); });
    const CrossEntropy part = cross_entropy_forward(c, logits, targets, settings.label_smoothing);
    total.sum += part.sum;
    total.counted += part.counted;
    if (gradients == nullptr) continue;
    Rows capped = logits;
    if (cap > 0) {
      capped = make_rows(scratch_, n, logits.width);
      for_each_row(c, n, [&](int64_t i) { std::copy_n(logits.row(i), logits.width, capped.row(i)); });
    }
    cross_entropy_backward(c, logits, targets, static_cast<float>(1 / divisor), settings.label_smoothing);
    if (cap > 0)
      for_each_row(c, n, [&](int64_t i) {
        for (int64_t j = 0; j < logits.width; j++) {
          const float t = capped.row(i)[j] / cap;
          logits.row(i)[j] *= 1 - t * t;
        }
      });
    Rows dh = make_rows(scratch_, n, x.width), part_dx = dx->slice(at, n);
    linear_backward(c, {w.f32_rows(), gradients->of(w.f32_rows()), nullptr, w.d_out(), w.d_in()}, h, logits,
                    norm.kind == NormKind::none ? part_dx : dh);
    if (norm.kind != NormKind::none)
      norm_backward(c, norm, {gradients->of(norm.gamma), gradients->of(norm.beta)}, x, dh, part_dx, false);
  }
  return total;
}

std::vector<RopeAngles> TrainStep::angles_of(const std::vector<int>& positions) {
  OpContext c = context(runner_, scratch_);
  std::vector<RopeAngles> angles;
  for (size_t i = 0; i < model_.config.ropes.size(); i++)
    angles.push_back(rope_angles(c, model_.config.ropes[i], model_.rope_frequencies[i], positions.data(),
                                 static_cast<int64_t>(positions.size())));
  return angles;
}

Rows TrainStep::tower_backward(const std::vector<Block>& blocks, Rows dx, Backward& s) {
  for (auto layer = static_cast<int>(blocks.size()) - 1; layer >= 0; layer--)
    block_backward(blocks[static_cast<size_t>(layer)], layer, dx, s);
  return dx;
}

void TrainStep::embedding_backward(Rows dx, const std::vector<int>& ids, const std::vector<int>& positions,
                                   Backward& s) {
  const ModelConfig& c = model_.config;
  if (c.embedding_norm != NormKind::none)
    norm_backward_in_place(s, model_.embedding_norm, s.saved.at(Point::embed_sum, -1, s.stack), dx);
  auto scatter = [&](const Matrix& table, const std::vector<int>& rows, double scale, int skipped = -1) {
    liuli::embedding_backward(s.ops, s.gradients.of(table.f32_rows()), rows, static_cast<float>(scale), dx,
                              skipped);
  };
  scatter(model_.token_embedding, ids, c.embedding_scale, padding_id_);
  if (c.positions == PositionTable::learned) scatter(model_.position_embedding, positions, 1);
  if (c.n_token_types > 0) scatter(model_.token_types, types_, 1);
}

void TrainStep::backward(Rows dx, GradientMap gradients) {
  OpContext ops = context(runner_, scratch_);
  Backward s{ops, saved_, gradients, main_stack(model_.config), sequences_, angles_of(positions_), {},
             {},  {},     {}};
  const bool encodes = model_.config.is_encoder_decoder();
  if (encodes) {
    s.encoded = stream_after(model_.encoder, saved_, Stack::encoder);
    s.d_encoded = make_rows(scratch_, s.encoded.n, s.encoded.width);
    for (int64_t i = 0; i < s.encoded.n; i++) std::fill_n(s.d_encoded.row(i), s.encoded.width, 0.0f);
    s.sources = {{nullptr, 0, s.encoded.n, 0, static_cast<int>(s.encoded.n)}};
  }
  embedding_backward(tower_backward(model_.blocks, dx, s), ids_, positions_, s);
  if (!encodes) return;
  source_positions_.resize(static_cast<size_t>(s.encoded.n));
  std::iota(source_positions_.begin(), source_positions_.end(), 0);
  s.stack = Stack::encoder;
  s.sequences = s.sources;
  s.angles = angles_of(source_positions_);
  embedding_backward(tower_backward(model_.encoder, s.d_encoded, s), batch_.front().source, source_positions_,
                     s);
}

CrossEntropy TrainStep::run(const std::vector<Example>& batch, GradientMap gradients,
                            const LossSettings& settings) {
  forward(batch, true);
  Rows dx;
  const CrossEntropy result = loss(settings, &gradients, &dx);
  backward(dx, gradients);
  return result;
}

}  // namespace liuli
