#include "liuli/sweep.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "engine/engine_parts.h"
#include "engine/sweep_journal.h"
#include "engine/sweep_meter.h"
#include "trace/sweep.h"

namespace liuli {
namespace {

// The wanted numbers of one axis; none: all of them. Errors: invalid_argument.
std::vector<int> choose(const char* what, const std::vector<int>& wanted, int64_t count) {
  std::vector<int> all(static_cast<size_t>(count));
  for (size_t i = 0; i < all.size(); i++) all[i] = static_cast<int>(i);
  if (wanted.empty()) return all;
  for (const int i : wanted)
    if (i < 0 || i >= count)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} {} does not exist: there are 0 … {}", what, i, count - 1));
  return wanted;
}

int resolve_position(int position, size_t n_tokens) {
  const int resolved = position < 0 ? position + static_cast<int>(n_tokens) : position;
  if (resolved < 0 || resolved >= static_cast<int>(n_tokens))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("position {} does not exist in a prompt of {} tokens", position, n_tokens));
  return resolved;
}

// What identifies a sweep, for its journal: FNV-1a of everything its numbers depend on.
std::string fingerprint(const std::string& text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return fmt::format("{:016x}", hash);
}

class Sweep {
 public:
  Sweep(Engine& engine, const std::vector<SweepPair>& pairs, const SweepSettings& settings)
      : parts_(engine.parts()), pairs_(pairs), settings_(settings), meter_(pairs, settings.metric) {
    check_model(engine.config());
    for (size_t i = 0; i < pairs.size(); i++) check_pair(i);
    choose_places(engine.config());
    meter_.prepare(parts_.model->output(), parts_.runner->pool);
  }

  SweepResult run() {
    const auto start = std::chrono::steady_clock::now();
    Sweeper sweeper(*parts_.model, *parts_.runner, parts_.classes.prompt, point_, result_.layers);
    open_journal();
    for (size_t first = 0; first < pairs_.size();) first = run_pairs(sweeper, first);
    average();
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

 private:
  void check_model(const ModelConfig& c) const {
    parts_.require_logits("a sweep");
    if (!c.causal || c.is_encoder_decoder())
      throw Error(
          ErrorCode::unsupported,
          fmt::format("{}: a sweep needs a causal decoder; {} models are none", parts_.path, c.family));
    if (pairs_.empty())
      throw Error(ErrorCode::invalid_argument, "there are no pairs of prompts to sweep over");
  }

  void check_pair(size_t i) const {
    const SweepPair& pair = pairs_[i];
    const ModelConfig& c = parts_.model->config;
    parts_.check_tokens(pair.clean, 0, c.max_seq_len);
    parts_.check_tokens(pair.corrupt, 0, c.max_seq_len);
    if (pair.clean.size() != pair.corrupt.size())
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("pair {}: the clean prompt has {} tokens, the corrupt one {}; positions of one have no "
                      "place in the other",
                      i, pair.clean.size(), pair.corrupt.size()));
    if (settings_.positions.empty() && pair.clean.size() != pairs_.front().clean.size())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("pair {} has {} tokens, pair 0 has {}: name positions that all pairs have", i,
                              pair.clean.size(), pairs_.front().clean.size()));
    const auto check_token = [&](const char* what, int id) {
      if (id < 0 || id >= c.vocab_size)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("pair {}: the metric needs the token {}; {} is none of 0 … {}", i, what, id,
                                c.vocab_size - 1));
    };
    if (settings_.metric != SweepMetric::kl) check_token("answer", pair.answer);
    if (settings_.metric == SweepMetric::logit_difference) check_token("wrong", pair.wrong);
  }

  void choose_places(const ModelConfig& config) {
    result_.n_pairs = static_cast<int64_t>(pairs_.size());
    result_.layers = choose("layer", settings_.layers, config.n_layers);
    point_ = find_sweep_point(config, settings_.point, result_.layers);
    result_.positions = settings_.positions;
    if (result_.positions.empty())
      result_.positions = choose("position", {}, static_cast<int64_t>(pairs_.front().clean.size()));
    for (const SweepPair& pair : pairs_)
      for (const int position : result_.positions) resolve_position(position, pair.clean.size());
    if (!settings_.by_head && !settings_.heads.empty())
      throw Error(ErrorCode::invalid_argument, "heads are named, but the sweep does not go over heads");
    if (settings_.by_head && point_.heads == 1 && point_.head_width == config.d_model)
      throw Error(ErrorCode::invalid_argument, fmt::format("{} has no heads to sweep over", settings_.point));
    result_.heads = settings_.by_head ? choose("head", settings_.heads, point_.heads) : std::vector<int>{-1};
    for (const SweepPair& pair : pairs_)
      for (const int layer : result_.layers)
        for (const int position : result_.positions)
          for (const int head : result_.heads) {
            const int pair_index = static_cast<int>(&pair - pairs_.data());
            patches_.push_back({pair_index, layer, resolve_position(position, pair.clean.size()), head});
          }
    result_.patches = static_cast<int64_t>(patches_.size());
    result_.values.resize(patches_.size());
    done_.resize(patches_.size());
  }

  void open_journal() {
    if (settings_.journal.empty()) return;
    std::string text = fmt::format("{} {} {} {} {} {}", parts_.path, kernels::best_kernels().name,
                                   static_cast<int>(parts_.classes.prompt), settings_.point,
                                   static_cast<int>(settings_.metric), settings_.into_clean);
    const auto add = [&text](const std::vector<int>& numbers) {
      text += ";";
      for (const int n : numbers) text += fmt::format("{},", n);
    };
    for (const auto* axis : {&result_.layers, &result_.positions, &result_.heads}) add(*axis);
    for (const SweepPair& pair : pairs_) {
      add(pair.clean);
      add(pair.corrupt);
      add({pair.answer, pair.wrong});
    }
    journal_ = SweepJournal(settings_.journal, fingerprint(text));
    for (const SweepJournal::Entry& entry : journal_.found()) {
      if (entry.at < 0 || entry.at >= result_.patches || done_[static_cast<size_t>(entry.at)]) continue;
      set(static_cast<size_t>(entry.at), entry.value);
      result_.resumed++;
    }
  }

  void set(size_t at, double value) {
    result_.values[at] = value;
    done_[at] = true;
    n_done_++;
  }

  // As many pairs as memory allows; returns the next one.
  size_t run_pairs(Sweeper& sweeper, size_t first) {
    constexpr int64_t kBytes = int64_t{1} << 30;
    sweeper.clear_pairs();
    size_t last = first;
    std::vector<Sweeper::Prompts> prompts;
    for (int64_t bytes = 0; last < pairs_.size(); last++) {
      const SweepPair& pair = pairs_[last];
      bytes += sweeper.pair_bytes(static_cast<int64_t>(pair.clean.size()));
      if (last > first && bytes > kBytes) break;
      prompts.push_back(settings_.into_clean ? Sweeper::Prompts{pair.clean, pair.corrupt}
                                             : Sweeper::Prompts{pair.corrupt, pair.clean});
    }
    const std::vector<Sweeper::Logits> logits = sweeper.add_pairs(prompts);
    for (size_t i = first; i < last; i++) measure_pair(i, logits[i - first]);
    run_patches(sweeper, first, last);
    return last;
  }

  void measure_pair(size_t i, const Sweeper::Logits& logits) {
    const bool swap = settings_.into_clean;
    meter_.set_clean(i, swap ? logits.trunk : logits.donor);
    const double clean = meter_.measure(i, swap ? logits.trunk : logits.donor);
    const double corrupt = meter_.measure(i, swap ? logits.donor : logits.trunk);
    if (!(std::fabs(clean - corrupt) > 0))
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("pair {}: the metric is {} for the clean and {} for the corrupt prompt: there is no "
                      "difference to explain",
                      i, clean, corrupt));
    result_.clean.push_back(clean);
    result_.corrupt.push_back(corrupt);
  }

  // Patches of one block of all these pairs belong together.
  void run_patches(Sweeper& sweeper, size_t first, size_t last) {
    for (const int layer : result_.layers) {
      std::vector<size_t> indices;
      std::vector<SweepPatch> batch;
      for (size_t i = 0; i < patches_.size(); i++) {
        SweepPatch patch = patches_[i];
        const auto pair = static_cast<size_t>(patch.pair);
        if (done_[i] || patch.layer != layer || pair < first || pair >= last) continue;
        patch.pair -= static_cast<int>(first);
        if (sweeper.changes_nothing(patch)) {
          set(i, settings_.into_clean ? result_.clean[pair] : result_.corrupt[pair]);
          result_.known++;
          continue;
        }
        indices.push_back(i);
        batch.push_back(patch);
      }
      run_block(sweeper, indices, batch);
    }
  }

  void run_block(Sweeper& sweeper, std::span<const size_t> indices, std::span<const SweepPatch> patches) {
    const Matrix& output = settings_.one_by_one ? parts_.model->output() : meter_.output();
    while (!patches.empty()) {
      const size_t n = settings_.one_by_one ? 1 : sweeper.batch_size(patches, batch_rows());
      const Rows logits = settings_.one_by_one ? sweeper.run_alone(patches.front(), output)
                                               : sweeper.run(patches.first(n), output);
      std::vector<SweepJournal::Entry> entries;
      for (size_t i = 0; i < n; i++) {
        const auto pair = static_cast<size_t>(patches_[indices[i]].pair);
        const auto row = static_cast<int64_t>(i);
        set(indices[i], meter_.measure(pair, {logits.row(row), static_cast<size_t>(logits.width)}));
        entries.push_back({static_cast<int64_t>(indices[i]), result_.values[indices[i]]});
      }
      journal_.append(entries);
      if (settings_.on_progress) settings_.on_progress(n_done_, result_.patches);
      patches = patches.subspan(n);
      indices = indices.subspan(n);
    }
  }

  // f32 wants a weight row decoded for many rows at once, the other classes want their rows in the L2 cache.
  int64_t batch_rows() const {
    if (settings_.batch_rows > 0) return settings_.batch_rows;
    return parts_.classes.prompt == ProductClass::f32 ? 2048 : 512;
  }

  void average() {
    const size_t places = patches_.size() / pairs_.size();
    result_.mean_value.assign(places, 0);
    result_.effect.assign(places, 0);
    const auto n = static_cast<double>(pairs_.size());
    for (size_t pair = 0; pair < pairs_.size(); pair++)
      for (size_t i = 0; i < places; i++) {
        const double value = result_.values[pair * places + i];
        const double span = result_.clean[pair] - result_.corrupt[pair];
        result_.mean_value[i] += value / n;
        result_.effect[i] += (value - result_.corrupt[pair]) / span / n;
      }
  }

  EngineParts& parts_;
  const std::vector<SweepPair>& pairs_;
  const SweepSettings& settings_;
  SweepPoint point_{};
  SweepResult result_;
  std::vector<SweepPatch> patches_;  ///< in the order of result_.values
  std::vector<bool> done_;
  int64_t n_done_ = 0;
  SweepMeter meter_;
  SweepJournal journal_;
};

}  // namespace

SweepResult sweep(Engine& engine, const std::vector<SweepPair>& pairs, const SweepSettings& settings) {
  return Sweep(engine, pairs, settings).run();
}

}  // namespace liuli
