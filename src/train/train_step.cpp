#include "train/train_step.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/check.h"
#include "model/block.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/norm.h"

namespace liuli {
namespace {

constexpr int64_t kLogitRows = 256;

OpContext context(Runner& runner, Arena& scratch) {
  OpContext c = make_context(runner, ProductClass::f32);
  return {c.kernels, c.rows, c.attention, c.pool, scratch, ProductClass::f32, c.bf16_products};
}

// The stream as it leaves a tower's last block.
Rows stream_after(const std::vector<Block>& blocks, const Saved& saved, Stack stack) {
  const auto last = static_cast<int>(blocks.size()) - 1;
  const bool post_norm = blocks.back().ffn_norm.after_add.kind != NormKind::none;
  return saved.at(post_norm ? Point::normalized_resid_post : Point::resid_post, last, stack);
}

Rows copy_of(OpContext& c, Rows x) {
  Rows copy = make_rows(c.scratch, x.n, x.width);
  for_each_row(c, x.n, [&](int64_t i) { std::copy_n(x.row(i), x.width, copy.row(i)); });
  return copy;
}

// y = cap · tanh(z / cap): dz = dy (1 − (y / cap)²), in place.
void soft_cap_backward(OpContext& c, Rows y, float cap, Rows dy) {
  for_each_row(c, y.n, [&](int64_t i) {
    for (int64_t j = 0; j < y.width; j++) {
      const float t = y.row(i)[j] / cap;
      dy.row(i)[j] *= 1 - t * t;
    }
  });
}

Stack main_stack(const ModelConfig& c) { return c.is_encoder_decoder() ? Stack::decoder : Stack::blocks; }

}  // namespace

// Listens to the forward pass: drops, and keeps what was asked for.
class TrainStep::Keeper final : public Probe {
 public:
  Keeper(TrainStep& step, OpContext& ops, Keep keep, Saved& saved)
      : step_(step), ops_(ops), keep_(keep), saved_(saved) {}

  bool wants(const Place& place) const override { return keeps(place) || drops(place) || watches(place); }
  void see(const ProbedValue& value) override {
    if (drops(value.place)) step_.dropout_.apply(ops_, value.place, value.rows);
    if (watches(value.place)) step_.watcher->see(value);
    if (keeps(value.place)) saved_.see(value);
  }
  bool sees_batches() const override { return true; }

 private:
  bool watches(const Place& place) const { return step_.watcher != nullptr && step_.watcher->wants(place); }
  // A block that is formed again begins from rows that were dropped already.
  bool drops(const Place& place) const {
    const bool again = &saved_ == &step_.layer_saved_ && place.point == Point::resid_pre;
    return keep_ != Keep::nothing && !again && step_.dropout_.drops(place);
  }
  bool keeps(const Place& place) const {
    if (keep_ == Keep::everything) return saved_.wants(place);
    return leaves_tower(place) || (keep_ == Keep::block_inputs &&
                                   (place.point == Point::resid_pre || place.point == Point::embed_sum));
  }
  bool leaves_tower(const Place& place) const {
    const std::vector<Block>& blocks = step_.model_.blocks;
    const bool post_norm = blocks.back().ffn_norm.after_add.kind != NormKind::none;
    return place.layer + 1 == static_cast<int>(blocks.size()) && place.stack != Stack::encoder &&
           place.point == (post_norm ? Point::normalized_resid_post : Point::resid_post);
  }

  TrainStep& step_;
  OpContext& ops_;
  Keep keep_;
  Saved& saved_;
};

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

std::vector<SequenceInput> TrainStep::make_inputs(const StepOptions& options) {
  const ModelConfig& c = model_.config;
  const auto& attention = attention_kernels(ProductClass::f32);
  std::vector<SequenceInput> inputs;
  for (size_t i = 0; i < batch_.size(); i++) {
    const Example& e = batch_[i];
    SequenceInput input{&caches_.emplace_back(cache_shape(c), attention), e.input};
    sequences_[i].cache = input.cache;
    input.token_types = e.types;
    if (c.is_encoder_decoder()) {
      input.source = &caches_.emplace_back(source_cache_shape(c), attention);
      encode_source(model_, runner_, e.source, *input.source, options);
    }
    inputs.push_back(input);
  }
  return inputs;
}

Rows TrainStep::forward(const std::vector<Example>& batch, Keep keep) {
  place(batch);
  saved_.clear();
  scratch_.release({});
  keep_ = keep;
  const ModelConfig& c = model_.config;
  LIULI_CHECK(!c.is_encoder_decoder() || (batch_.size() == 1 && keep != Keep::block_inputs));
  OpContext ops = context(runner_, scratch_);
  Keeper keeper(*this, ops, keep, saved_);
  StepOptions options;
  options.product_class = ProductClass::f32;
  options.listener = &keeper;
  options.no_logits = true;
  transformer_forward(model_, runner_, make_inputs(options), options);
  if (keep != Keep::block_inputs) caches_.clear();
  return output_ = stream_after(model_.blocks, saved_, main_stack(c));
}

Rows TrainStep::new_rows_like_output() {
  Rows dx = make_rows(scratch_, output_.n, output_.width);
  for (int64_t i = 0; i < dx.n; i++) std::fill_n(dx.row(i), dx.width, 0.0f);
  return dx;
}

CrossEntropy TrainStep::loss(const LossSettings& settings, GradientMap* gradients, Rows* dx) {
  LIULI_CHECK(model_.config.has_output && (gradients == nullptr) == (dx == nullptr));
  if (dx != nullptr) *dx = new_rows_like_output();
  const auto counted =
      std::count_if(targets_.begin(), targets_.end(), [](int t) { return t != kIgnoredTarget; });
  const double divisor =
      settings.divisor > 0 ? settings.divisor : static_cast<double>(std::max<ptrdiff_t>(counted, 1));
  CrossEntropy total;
  for (int64_t at = 0; at < output_.n; at += kLogitRows)
    loss_of_rows(at, std::min(kLogitRows, output_.n - at), settings, divisor, gradients, dx, total);
  return total;
}

void TrainStep::loss_of_rows(int64_t first, int64_t n, const LossSettings& settings, double divisor,
                             GradientMap* gradients, Rows* dx, CrossEntropy& total) {
  OpContext c = context(runner_, scratch_);
  const Arena::Scope scope(scratch_);
  const std::span<const int> targets(targets_.data() + first, static_cast<size_t>(n));
  const auto cap = static_cast<float>(model_.config.final_soft_cap);
  const Matrix& w = model_.output();
  const Norm& norm = model_.final_norm;
  const Rows x = output_.slice(first, n);
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
  if (gradients == nullptr) return;
  const Rows capped = cap > 0 ? copy_of(c, logits) : Rows{};
  cross_entropy_backward(c, logits, targets, static_cast<float>(1 / divisor), settings.label_smoothing);
  if (cap > 0) soft_cap_backward(c, capped, cap, logits);
  const Rows part_dx = dx->slice(first, n);
  const bool normed = norm.kind != NormKind::none;
  Rows dh = normed ? make_rows(scratch_, n, x.width) : part_dx;
  linear_backward(c, {w.f32_rows(), gradients->of(w.f32_rows()), nullptr, w.d_out(), w.d_in()}, h, logits,
                  dh);
  if (normed)
    norm_backward(c, norm, {gradients->of(norm.gamma), gradients->of(norm.beta)}, x, dh, part_dx, false);
}

std::vector<RopeAngles> TrainStep::angles_of(const std::vector<int>& positions) {
  OpContext c = context(runner_, scratch_);
  std::vector<RopeAngles> angles;
  for (size_t i = 0; i < model_.config.ropes.size(); i++)
    angles.push_back(rope_angles(c, model_.config.ropes[i], model_.rope_frequencies[i], positions.data(),
                                 static_cast<int64_t>(positions.size())));
  return angles;
}

// A block's forward once more, from what entered it: the same bits, as its caches hold the same keys and values.
void TrainStep::form_again(int layer, Backward& s) {
  const Arena::Scope scope(scratch_);
  layer_saved_.clear();
  Keeper keeper(*this, s.ops, Keep::everything, layer_saved_);
  Step step(s.ops, &keeper);
  step.stack = s.stack;
  step.sequences = sequences_;
  step.positions = positions_;
  step.angles = s.angles;
  Rows x = copy_of(s.ops, saved_.at(Point::resid_pre, layer, s.stack));
  block_forward(model_.blocks[static_cast<size_t>(layer)], layer, x, step);
  s.saved = &layer_saved_;
}

Rows TrainStep::tower_backward(const std::vector<Block>& blocks, Rows dx, Backward& s) {
  for (auto layer = static_cast<int>(blocks.size()) - 1; layer >= 0; layer--) {
    if (on_gradient) on_gradient(layer + 1, dx);
    if (keep_ == Keep::block_inputs) form_again(layer, s);
    block_backward(blocks[static_cast<size_t>(layer)], layer, dx, s);
  }
  s.saved = &saved_;
  const Place entry{Point::resid_pre, 0, s.stack};
  if (dropout_.drops(entry)) dropout_.apply(s.ops, entry, dx);
  if (on_gradient) on_gradient(0, dx);
  return dx;
}

void TrainStep::embedding_backward(Rows dx, const std::vector<int>& ids, const std::vector<int>& positions,
                                   Backward& s) {
  const ModelConfig& c = model_.config;
  if (c.embedding_norm != NormKind::none)
    norm_backward_in_place(s, model_.embedding_norm, s.saved->at(Point::embed_sum, -1, s.stack), dx);
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
  Backward s{ops, &saved_, gradients, main_stack(model_.config), sequences_, angles_of(positions_), {},
             {},  {},      {}};
  LIULI_CHECK(keep_ != Keep::nothing);
  if (dropout_.rate > 0) s.mask_branch = [&](const Place& place, Rows d) { dropout_.apply(ops, place, d); };
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
                            const LossSettings& settings, Keep keep) {
  forward(batch, keep);
  Rows dx;
  const CrossEntropy result = loss(settings, &gradients, &dx);
  backward(dx, gradients);
  return result;
}

}  // namespace liuli
