// Training: from a configuration to a model folder that everybody can load.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace liuli {

/// A tokenizer to be made from text.
struct TokenizerSettings {
  /// "qwen2", "gpt-2": byte-level BPE, words cut as those models do; "characters": one token per character.
  std::string kind = "qwen2";
  int64_t vocab_size = 4096;                                     ///< everything counted
  int64_t min_count = 2;                                         ///< what is seen less often becomes no token
  std::vector<std::string> special = {"<|endoftext|>"};          ///< ids from 0; the first ends a text
  std::function<void(int64_t done, int64_t total)> on_progress;  ///< tokens made; may throw to stop
};

struct TokenizerReport {
  int64_t vocab_size = 0, merges = 0;
  int64_t text_bytes = 0, text_tokens = 0;  ///< of the text it was made from
};

/// Writes tokenizer.json and tokenizer_config.json into `folder` (made if need be). data: text files, see
/// TrainSettings::data. Errors: not_found, io_error, invalid_argument (no text, a vocabulary too small for the bytes),
/// unsupported (a kind nobody knows).
TokenizerReport train_tokenizer(const std::vector<std::string>& data, const std::string& folder,
                                const TokenizerSettings& settings = {});

/// A model by its sizes; 0: what the family usually has.
struct NewModel {
  std::string family = "llama";  ///< gpt2, qwen2, qwen3, gemma3, olmo2
  int64_t d_model = 256, n_layers = 4, n_heads = 4, n_kv_heads = 0, head_dim = 0, d_ff = 0;
  int64_t max_seq_len = 512;
};
/// Its config.json, for TrainSettings::model_config. Errors: not_found (the family), invalid_argument (sizes).
std::string make_model_config(const NewModel& model);

/// A run, as run.json spells it (docs/training.md lists the keys).
struct TrainSettings {
  std::string model_config;                  ///< config.json's text, for a model from scratch
  std::string model;                         ///< or a model folder to go on from
  std::string initialisation = "automatic";  ///< normal, gpt2, truncated_normal, xavier
  double initial_std = 0.02;

  std::string tokenizer;  ///< a folder with one; "": the model's, or one made from the data
  TokenizerSettings new_tokenizer;
  /// .txt: one document, or several with `separator` between; .jsonl: the "text" of each line is a document; .tokens,
  /// .npy: token ids.
  std::vector<std::string> data, held_out_data;
  std::string separator;
  double held_out = 0.05;  ///< the part of the documents kept back when there is no held_out_data

  std::string output;  ///< the run's folder
  int64_t steps = 1000, batch = 16, sequence_length = 128, accumulate = 1;
  std::string optimizer = "adamw";  ///< adam, sgd, muon
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1, momentum = 0.95;
  std::string schedule = "cosine";  ///< constant, linear, wsd, noam
  double learning_rate = 1e-3, min_factor = 0.1, decay_fraction = 0.2;
  int64_t warm_up = 0;
  double clip = 1, dropout = 0, label_smoothing = 0;
  bool recompute =
      false;  ///< form blocks again on the way back: a tenth of the memory, one forward pass more
  /// Matrix products of training, evaluation and samples: "f32", or "bf16", which rounds their operands to bf16 and sums
  /// in f32. Weights, moments, norms, softmax and the residual stream are f32 either way.
  std::string products = "f32";
  uint64_t seed = 1;
  int threads = 0;  ///< changes no bit

  int64_t evaluate_every = 100, evaluate_windows = 64;
  int64_t checkpoint_every = 200, keep = 2;  ///< the last `keep`, and the best by held-out loss
  int64_t sample_every = 0, sample_tokens = 64;
  std::string sample_prompt;
  double temperature = 0.8;  ///< of samples, and what generation_config.json recommends

  int64_t lora_rank = 0;  ///< 0: every weight learns
  double lora_alpha = 16;
  std::vector<std::string> lora_targets = {"q", "v"};
};

/// Errors: corrupt_file (no JSON, another type), invalid_argument (a key nobody knows, a value out of range). `place`
/// begins every message.
TrainSettings parse_train_settings(const std::string& json, const std::string& place);
/// The text that parse_train_settings() takes.
std::string to_json(const TrainSettings& settings);

/// What a run is made of, before its first step.
struct TrainPlan {
  std::string family;
  int64_t parameters = 0, learning = 0;  ///< learning: of adapters, or all
  int64_t vocab_size = 0, train_tokens = 0, held_out_tokens = 0;
  int64_t first_step = 0, steps = 0, tokens_per_step = 0;
};

struct TrainProgress {
  int64_t step = 0, steps = 0;  ///< made, in all
  double loss = 0, smoothed_loss = 0, gradient_norm = 0, learning_rate = 0;
  double tokens_per_second = 0, seconds_left = 0;
  std::optional<double> held_out_loss;  ///< the last there is
  std::string sparkline;                ///< the loss so far, as one line of bars
};

struct TrainCallbacks {
  std::function<void(const TrainPlan&)> on_plan;
  std::function<void(const TrainProgress&)> on_step;
  std::function<void(int64_t step, double loss)> on_evaluation;
  std::function<void(int64_t step, const std::string& text)> on_sample;
  std::function<void(int64_t step, const std::string& path)> on_checkpoint;
  std::function<void(const std::string& what, int64_t done, int64_t total)> on_preparation;
  const std::atomic<bool>* cancel = nullptr;  ///< ends the run after a step, with a checkpoint
};

struct TrainResult {
  bool finished = false;  ///< false: cancelled
  int64_t step = 0;
  double loss = 0;  ///< smoothed
  std::optional<double> held_out_loss;
  std::string checkpoint;  ///< the last one's folder
  std::string model;       ///< the finished model's folder, adapters merged; "" when cancelled
  double seconds = 0;
};

/// Trains. Everything lands below settings.output: step-NNNNNN (checkpoints), log.jsonl, loss.svg, and at the end model.
///
/// Errors: those of files; invalid_argument for settings that contradict each other, for an output that holds a run
/// already, and for a loss that is no longer a number, naming the first point and position where it happened and the
/// last good checkpoint.
TrainResult train(const TrainSettings& settings, const TrainCallbacks& callbacks = {});

/// Goes on from the newest complete checkpoint of a run's folder; on one machine the same bits as if it had never
/// stopped. threads and steps: ≥ 0 replace the run's own. Errors: not_found (no checkpoint), invalid_argument (other
/// data than the run began with), and train()'s.
TrainResult resume_training(const std::string& folder, const TrainCallbacks& callbacks = {}, int threads = -1,
                            int64_t steps = -1);

}  // namespace liuli
