#include "trace/sweep.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/check.h"
#include "liuli/error.h"
#include "trace/point_selection.h"
#include "trace/recorder.h"

namespace liuli {
namespace {

constexpr int64_t kNoLimit = int64_t{1} << 62;

std::vector<Place> places_of(Point point, std::span<const int> layers) {
  std::vector<Place> places;
  for (const int layer : layers) places.push_back({point, layer});
  return places;
}

std::vector<int> all_layers(const Model& model) {
  std::vector<int> layers(model.blocks.size());
  for (size_t i = 0; i < layers.size(); i++) layers[i] = static_cast<int>(i);
  return layers;
}

std::vector<std::vector<float>> take_values(Recorder& recorder) {
  std::vector<std::vector<float>> values;
  for (TracedTensor& tensor : recorder.take()) values.push_back(std::move(tensor.values));
  return values;
}

// Several sequences' listeners: each sees its own rows.
class Apart final : public Probe {
 public:
  void add(Probe& listener, int64_t n_rows) { listeners_.emplace_back(&listener, n_rows); }
  bool sees_batches() const override { return true; }
  bool may_change(const Place&) const override { return false; }
  bool wants(const Place& place) const override {
    return std::any_of(listeners_.begin(), listeners_.end(),
                       [&](const auto& l) { return l.first->wants(place); });
  }
  void see(const ProbedValue& value) override {
    int64_t row = 0;
    for (const auto& [listener, n_rows] : listeners_) {
      ProbedValue own = value;
      own.rows = value.rows.slice(row, n_rows);
      if (listener->wants(value.place)) listener->see(own);
      row += n_rows;
    }
  }

 private:
  std::vector<std::pair<Probe*, int64_t>> listeners_;
};

constexpr int64_t kRowsTogether = 512;

}  // namespace

SweepPoint find_sweep_point(const ModelConfig& config, const std::string& name,
                            const std::vector<int>& layers) {
  SweepPoint found{};
  for (const int layer : layers) {
    const std::string whole = fmt::format("blocks.{}.{}", layer, name);
    const std::vector<Place> places = select_places(config, {whole});
    const Place& place = places.front();
    if (config.is_latent() &&
        (place.point == Point::attn_k || place.point == Point::attn_rot_k || place.point == Point::attn_v))
      throw Error(
          ErrorCode::unsupported,
          fmt::format("{} cannot be changed: latent attention forms it for show; patch attn.kv_latent",
                      whole));
    const auto& shape = point_info(place.point).shape;
    found.scores = shape.size() == 3 && shape[1] == Axis::token;
    if (places.size() != 1 || place.layer != layer || place.expert >= 0 ||
        (shape.front() != Axis::token && !found.scores))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: a sweep patches one value of every token of a block", whole));
    found.point = place.point;
    found.heads = found.scores        ? axis_size(config, shape[0])
                  : shape.size() == 3 ? axis_size(config, shape[1])
                                      : 1;
    found.head_width = found.scores ? 0 : axis_size(config, shape.back());
  }
  return found;
}

Matrix select_rows(const Matrix& matrix, std::span<const int> ids, ThreadPool& pool) {
  const size_t bytes = matrix.stored_row_bytes();
  auto rows = std::make_shared<AlignedBuffer>(bytes * ids.size());
  std::vector<uint8_t> scratch;
  for (size_t i = 0; i < ids.size(); i++)
    std::memcpy(rows->data() + i * bytes, matrix.stored_row(ids[i], scratch), bytes);
  Matrix selected(matrix.name(), matrix.type(), static_cast<int64_t>(ids.size()), matrix.d_in(),
                  FileRows{{rows, rows->data()}});
  if (matrix.has_panels()) selected.build_panels(pool);
  return selected;
}

// Puts the donors' values into the first row of every branch.
class Sweeper::Patcher final : public Probe {
 public:
  Patcher(const Sweeper& sweeper, std::span<const SweepPatch> patches, bool whole_run = false)
      : sweeper_(sweeper), patches_(patches), whole_run_(whole_run) {}

  bool sees_batches() const override { return true; }
  bool wants(const Place& place) const override {
    return place.point == sweeper_.point_.point && place.layer == patches_.front().layer &&
           place.stack == Stack::blocks;
  }
  void see(const ProbedValue& value) override {
    fired_ = true;
    if (sweeper_.point_.scores) return patch_scores(value);
    if (whole_run_)
      return patch_row(patches_.front(), value.rows, patches_.front().position - value.first_position);
    int64_t row = 0, n_rows = 0;
    for (const SweepPatch& patch : patches_) n_rows += rows_of(patch);
    // In the last block, behind the keys and values, only last rows go on: an earlier one has no way to the metric.
    const bool narrowed = value.rows.n < n_rows;
    for (size_t i = 0; i < patches_.size(); i++) {
      if (!narrowed)
        patch_row(patches_[i], value.rows, row);
      else if (rows_of(patches_[i]) == 1)
        patch_row(patches_[i], value.rows, static_cast<int64_t>(i));
      row += rows_of(patches_[i]);
    }
  }
  bool fired() const { return fired_; }

 private:
  const Run& run_of(const SweepPatch& patch) const { return sweeper_.runs_[static_cast<size_t>(patch.pair)]; }
  int64_t rows_of(const SweepPatch& patch) const {
    return static_cast<int64_t>(run_of(patch).ids.size()) - patch.position;
  }
  const std::vector<float>& donor(const SweepPatch& patch) const {
    return run_of(patch).donor[sweeper_.layer_index(patch.layer)];
  }

  void patch_row(const SweepPatch& patch, Rows rows, int64_t row) const {
    if (row < 0 || row >= rows.n) return;  // another chunk's
    const int64_t width = patch.head < 0 ? rows.width : sweeper_.point_.head_width;
    const int64_t first = patch.head < 0 ? 0 : patch.head * width;
    std::memcpy(rows.row(row) + first, donor(patch).data() + patch.position * rows.width + first,
                static_cast<size_t>(width) * sizeof(float));
  }

  void patch_scores(const ProbedValue& value) const {
    const SweepPatch& patch = patches_.front();
    const int64_t row = patch.position - value.first_position,
                  n = static_cast<int64_t>(run_of(patch).ids.size());
    if (row < 0 || row >= value.rows.n) return;
    for (int64_t head = 0; head < value.heads; head++)
      if (patch.head < 0 || head == patch.head)
        std::memcpy(value.rows.data + head * value.head_stride + row * value.rows.stride,
                    donor(patch).data() + (head * n + patch.position) * n,
                    static_cast<size_t>(patch.position + 1) * sizeof(float));  // the mask hides the others
  }

  const Sweeper& sweeper_;
  std::span<const SweepPatch> patches_;
  bool whole_run_, fired_ = false;
};

Sweeper::Sweeper(const Model& model, Runner& runner, ProductClass product_class, SweepPoint point,
                 std::vector<int> layers)
    : model_(model),
      runner_(runner),
      class_(product_class),
      point_(point),
      layers_(std::move(layers)),
      branches_(model, runner) {}

size_t Sweeper::layer_index(int layer) const {
  return static_cast<size_t>(std::find(layers_.begin(), layers_.end(), layer) - layers_.begin());
}

int64_t Sweeper::pair_bytes(int64_t n_tokens) const {
  const TokenCounts counts{n_tokens, 0};
  const int64_t values = capture_bytes(model_.config, places_of(point_.point, layers_), counts);
  const int64_t stream =
      capture_bytes(model_.config, places_of(Point::resid_pre, all_layers(model_)), counts);
  const auto pages = static_cast<size_t>((n_tokens + kernels::kPagePositions - 1) / kernels::kPagePositions);
  const auto& attention = attention_kernels(class_, model_.cache_form);
  const size_t cache = KvCache::bytes_per_page(cache_shape(model_.config), attention) * pages;
  const std::vector<int> with_queries = knows_queries() ? layers_ : std::vector<int>{};
  const int64_t queries = capture_bytes(model_.config, places_of(Point::attn_rot_q, with_queries), counts);
  return 2 * values + stream + queries + static_cast<int64_t>(cache);
}

// A prompt on its way: what of it is kept, and where.
struct Sweeper::Recorded {
  const std::vector<int>& ids;
  Sequence& sequence;
  Recorder values;
  std::vector<float> logits = {};
};

Sweeper::Run Sweeper::new_run(const std::vector<int>& trunk) const {
  Run run;
  run.ids = trunk;
  run.trunk = std::make_unique<Sequence>(model_, RunClasses{class_, class_});
  return run;
}

// As many prompts in a pass as make a batch: 24 prompts of 15 tokens, one by one, read the weights 24 times and took a sixth
// of a whole sweep. Scores are shown of one sequence at a time, and a long prompt fills its passes alone.
void Sweeper::run_prompts(std::span<Recorded> prompts) {
  while (!prompts.empty()) {
    size_t n = 0;
    int64_t rows = 0;
    Apart listeners;
    std::vector<Sequence*> sequences;
    std::vector<const std::vector<int>*> ids;
    for (; n < prompts.size(); n++) {
      rows += static_cast<int64_t>(prompts[n].ids.size());
      if (n > 0 && (rows > kRowsTogether || point_.scores)) break;
      listeners.add(prompts[n].values, static_cast<int64_t>(prompts[n].ids.size()));
      sequences.push_back(&prompts[n].sequence);
      ids.push_back(&prompts[n].ids);
    }
    Rows logits;
    if (n == 1) {
      FeedOptions options;
      options.listener = &prompts[0].values;
      if (point_.scores) options.chunk = static_cast<int>(ids[0]->size());
      logits = sequences[0]->feed(runner_, *ids[0], options);
    } else {
      logits = Sequence::feed_prompts_together(runner_, sequences, ids, &listeners);
    }
    for (size_t i = 0; i < n; i++) {
      const float* row = logits.row(logits.n - static_cast<int64_t>(n - i));
      prompts[i].logits.assign(row, row + logits.width);
    }
    prompts = prompts.subspan(n);
  }
}

std::vector<Sweeper::Logits> Sweeper::add_pairs(std::span<const Prompts> pairs) {
  std::vector<Place> of_donor = places_of(point_.point, layers_),
                     of_trunk = places_of(Point::resid_pre, all_layers(model_));
  const size_t n_stream = of_trunk.size();
  of_trunk.insert(of_trunk.end(), of_donor.begin(), of_donor.end());
  if (knows_queries())
    for (const Place& place : places_of(Point::attn_rot_q, layers_)) of_trunk.push_back(place);
  const size_t first_run = runs_.size();
  std::vector<Sequence> donors;
  donors.reserve(pairs.size());
  std::vector<Recorded> prompts;
  for (const Prompts& pair : pairs) {
    LIULI_CHECK(pair.trunk.size() == pair.donor.size() && !pair.trunk.empty());
    const TokenCounts counts{static_cast<int64_t>(pair.trunk.size()), 0};
    runs_.push_back(new_run(pair.trunk));
    donors.emplace_back(model_, RunClasses{class_, class_});
    prompts.push_back({pair.trunk, *runs_.back().trunk, {model_.config, of_trunk, counts, kNoLimit}});
    prompts.push_back({pair.donor, donors.back(), {model_.config, of_donor, counts, kNoLimit}});
  }
  run_prompts(prompts);
  std::vector<Logits> logits;
  for (size_t i = 0; i < pairs.size(); i++) {
    Run& run = runs_[first_run + i];
    std::vector<std::vector<float>> values = take_values(prompts[2 * i].values);
    const auto part = [&](size_t begin, size_t end) {
      return std::vector<std::vector<float>>(
          std::make_move_iterator(values.begin() + static_cast<ptrdiff_t>(begin)),
          std::make_move_iterator(values.begin() + static_cast<ptrdiff_t>(end)));
    };
    run.stream = part(0, n_stream);
    run.own = part(n_stream, n_stream + layers_.size());
    run.queries = part(n_stream + layers_.size(), values.size());
    run.donor = take_values(prompts[2 * i + 1].values);
    logits.push_back({std::move(prompts[2 * i].logits), std::move(prompts[2 * i + 1].logits)});
  }
  return logits;
}

bool Sweeper::changes_nothing(const SweepPatch& patch) const {
  const Run& run = runs_[static_cast<size_t>(patch.pair)];
  const auto& a = run.own[layer_index(patch.layer)];
  const auto& b = run.donor[layer_index(patch.layer)];
  const auto n = static_cast<int64_t>(run.ids.size());
  const auto same = [&](int64_t first, int64_t count) {
    return std::memcmp(a.data() + first, b.data() + first, static_cast<size_t>(count) * sizeof(float)) == 0;
  };
  const int64_t heads = point_.heads;
  for (int64_t head = std::max(0, patch.head); head < (patch.head < 0 ? heads : patch.head + 1); head++) {
    const bool equal = point_.scores
                           ? same((head * n + patch.position) * n, patch.position + 1)
                           : same((patch.position * heads + head) * point_.head_width, point_.head_width);
    if (!equal) return false;
  }
  return true;
}

size_t Sweeper::batch_size(std::span<const SweepPatch> patches, int64_t rows) const {
  if (point_.scores) return 1;  // attention shows the scores of one sequence at a time
  size_t n = 0;
  for (int64_t sum = 0; n < patches.size() && patches[n].layer == patches.front().layer; n++) {
    sum += static_cast<int64_t>(runs_[static_cast<size_t>(patches[n].pair)].ids.size()) - patches[n].position;
    if (n > 0 && sum > rows) break;
  }
  return n;
}

// Before the queries only the patched row differs from the trunk; what the others ask for is known.
bool Sweeper::knows_queries() const {
  const bool before =
      point_.point == Point::resid_pre || (point_.point >= norm_point(NormSite::ln1, NormStage::mean) &&
                                           point_.point <= norm_point(NormSite::ln1, NormStage::out));
  const bool pre_norm = std::all_of(model_.blocks.begin(), model_.blocks.end(), [](const Block& b) {
    return b.attn_norm.after_add.kind == NormKind::none;
  });
  return before && pre_norm && !model_.config.is_latent();
}

const float* Sweeper::queries_of(const Run& run, const SweepPatch& patch) const {
  if (run.queries.empty()) return nullptr;
  const int64_t width = model_.config.n_heads * model_.config.head_dim;
  return run.queries[layer_index(patch.layer)].data() + patch.position * width;
}

Rows Sweeper::run(std::span<const SweepPatch> patches, const Matrix& output) {
  const int layer = patches.front().layer;
  const int64_t width = model_.config.d_model, stride = round_up(width, 64);
  std::vector<Branch> branches;
  int64_t n_rows = 0;
  for (const SweepPatch& patch : patches) {
    Run& run = runs_[static_cast<size_t>(patch.pair)];
    LIULI_CHECK(patch.layer == layer);
    branches.push_back({&run.trunk->cache(), patch.position, queries_of(run, patch)});
    n_rows += static_cast<int64_t>(run.ids.size()) - patch.position;
  }
  AlignedBuffer memory(static_cast<size_t>(n_rows * stride) * sizeof(float));
  const Rows x{memory.as<float>(), n_rows, width, stride};
  int64_t row = 0;
  for (const SweepPatch& patch : patches) {
    const Run& run = runs_[static_cast<size_t>(patch.pair)];
    const auto& stream = run.stream[static_cast<size_t>(layer)];
    for (int64_t i = patch.position; i < static_cast<int64_t>(run.ids.size()); i++)
      std::memcpy(x.row(row++), stream.data() + i * width, static_cast<size_t>(width) * sizeof(float));
  }
  Patcher patcher(*this, patches);
  StepOptions options;
  options.product_class = class_;
  options.listener = &patcher;
  const Rows logits = branches_.run(layer, x, branches, output, options);
  LIULI_CHECK(patcher.fired());
  return logits;
}

Rows Sweeper::run_alone(const SweepPatch& patch, const Matrix& output) {
  const Run& run = runs_[static_cast<size_t>(patch.pair)];
  Patcher patcher(*this, {&patch, 1}, true);
  Sequence sequence(model_, {class_, class_});
  FeedOptions options;
  options.listener = &patcher;
  options.chunk = static_cast<int>(run.ids.size());
  const Rows logits = sequence.feed(runner_, run.ids, options);
  LIULI_CHECK(patcher.fired() && logits.width == output.d_out());
  return logits.slice(logits.n - 1, 1);
}

}  // namespace liuli
