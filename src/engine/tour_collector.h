// Collects what a tour shows of one run.
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/engine_parts.h"
#include "liuli/tour.h"
#include "report/tour.h"
#include "trace/point_selection.h"

namespace liuli {

/// Values, weights and results of one run, as they are collected; used once.
class TourCollector {
 public:
  using Json = nlohmann::ordered_json;
  using Tensors = std::map<std::string, TracedTensor>;

  TourCollector(Engine& engine, const std::vector<int>& ids, const TourSettings& settings)
      : engine_(engine), config_(engine.config()), ids_(ids), settings_(settings), layers_(chosen_layers()) {}

  Json collect();

 private:
  int64_t n_tokens() const { return static_cast<int64_t>(ids_.size()); }
  int last_token() const { return static_cast<int>(ids_.size()) - 1; }
  void progress(int done) const;
  static std::string at(int64_t layer, const std::string& name) {
    return fmt::format("blocks.{}.{}", layer, name);
  }

  // ---- which layers ----
  std::vector<std::string> points_of_layer(int64_t layer) const;
  std::vector<int> chosen_layers() const;

  // ---- what the page says above everything ----
  Json token_json(int id) const;
  void heading();
  void ropes();

  // ---- values at points ----
  Tensors trace(const std::vector<std::string>& names) const;
  std::vector<std::string> wanted_points() const;
  bool is_chosen(int layer) const {
    return std::find(layers_.begin(), layers_.end(), layer) != layers_.end();
  }

  void trace_values();
  void loudest_neurons(int layer, const TracedTensor& post);
  void norms(const Tensors& traced, const std::string& name);
  void experts(const Tensors& traced);

  // ---- weights ----
  void weights();
  static void want_norm(std::set<std::string>& wanted, const std::string& site);
  void rows(const std::string& name, const Matrix& matrix, const std::vector<int>& which);

  // ---- the storeys' own guesses ----
  void lens();
  std::vector<int> best_ids(const float* row, int64_t n, int count) const;
  Json best(const float* row, int64_t n, int count) const;
  void keep_logits(const float* row, int64_t n);

  // ---- what comes next ----
  void continuation();
  void text_vector();

  // ---- numbers that matrices made ----
  std::vector<std::string> explained_numbers() const;
  void explanations();

  Engine& engine_;
  const ModelConfig& config_;
  const std::vector<int>& ids_;
  const TourSettings& settings_;
  const std::vector<int> layers_;
  std::vector<TracedTensor> streams_;  ///< resid_post of every layer
  std::vector<std::string> loudest_;   ///< numbers of mlp.pre and mlp.pre_linear
  TensorPack values_, weights_;
  Json out_;
};

/// Of one expert out of many: only those of chosen tokens are collected.
inline bool is_of_one_expert(const Place& place) { return place.expert >= 0; }

}  // namespace liuli
