// Tiny models of tests/golden, ready to learn.
#pragma once
#include <memory>

#include "formats/safetensors.h"
#include "golden_support.h"
#include "model/load.h"
#include "train/parameters.h"
#include "train/train_step.h"

namespace liuli::golden {

/// A tiny model of a Hugging Face folder, ready to learn.
struct Learner {
  explicit Learner(const std::string& name, int threads = 2)
      : Learner(golden_path("tiny/" + name), golden_path("tiny/" + name + "/golden.safetensors"), threads) {}
  Learner(const std::string& folder, const std::string& golden_file, int threads)
      : source(open_weights(folder)),
        golden(golden_file),
        config(read_model_config(*source)),
        parameters(config, source.get()),
        runner(threads) {
    parameters.copy_from(*source);
    model = bind_trained_model(config, parameters.source());
  }

  int padding() const { return static_cast<int>(source->metadata().integer("pad_token_id").value_or(-1)); }
  std::vector<int> ids(const std::string& key) const { return token_ids(golden, key); }

  std::shared_ptr<WeightSource> source;
  SafetensorsFile golden;
  ModelConfig config;
  Parameters parameters;
  Runner runner;
  Model model;
};

inline Example next_token_example(const std::vector<int>& ids) {
  Example e{ids, {ids.begin() + 1, ids.end()}, {}, {}};
  e.target.push_back(kIgnoredTarget);
  return e;
}

}  // namespace liuli::golden
