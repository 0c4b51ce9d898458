// A run with its files: everything between run.json and the trainer.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "engine/train_data.h"
#include "liuli/train.h"
#include "train/checkpoint.h"
#include "train/trainer.h"
#include "train/training_log.h"

namespace liuli {

/// Only one process may write into a run's folder. Errors: io_error; invalid_argument (another one does).
class RunLock {
 public:
  explicit RunLock(const std::string& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int descriptor_ = -1;
};

/// What a checkpoint's run.json says beside the settings.
struct RunState {
  int64_t step = 0, best_step = -1;
  double best_loss = 0;
  uint64_t data = 0;  ///< fingerprint of the training tokens
};

class TrainRun {
 public:
  /// A new run, or (checkpoint not empty) one that goes on from a checkpoint's folder.
  TrainRun(const TrainSettings& settings, const TrainCallbacks& callbacks,
           const std::string& checkpoint = "");
  TrainResult run();

 private:
  void load_texts(const std::string& checkpoint);
  void make_model();
  void restore(const std::string& checkpoint);
  BatchSource batches() const;
  TrainerSettings trainer_settings() const;
  TrainPlan plan() const;

  void one_step();
  void evaluate();
  void sample();
  void save();
  void report(const StepReport& step, double seconds);
  void draw_curves() const;
  [[noreturn]] void fail_not_finite(const StepReport& step) const;
  std::string last_good() const;
  TextFiles texts_with_state() const;
  nlohmann::ordered_json model_json() const;

  TrainSettings settings_;
  const TrainCallbacks& callbacks_;
  RunLock lock_;
  TextFiles texts_;  ///< tokenizer and generation settings, as checkpoints carry them
  std::shared_ptr<WeightSource> base_;
  std::unique_ptr<Tokenizer> tokenizer_;
  int end_token_ = -1;
  nlohmann::ordered_json config_json_;
  ModelConfig config_;
  Dataset data_;
  std::vector<Example> held_out_;
  RunState state_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<Parameters> weights_;
  std::unique_ptr<Lora> lora_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<TrainingLog> log_;
  TrainResult result_;
  double seconds_per_step_ = 0;
};

}  // namespace liuli
