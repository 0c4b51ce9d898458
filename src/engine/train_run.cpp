#include "engine/train_run.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "core/output_file.h"
#include "generate/generate.h"
#include "liuli/error.h"
#include "model/load.h"
#include "tokenizers/hugging_face.h"
#include "train/config_source.h"
#include "train/initialise.h"

namespace liuli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What a model folder may hold for the text side; carried along as it is.
constexpr const char* kTextFiles[] = {"tokenizer.json",
                                      "tokenizer_config.json",
                                      "special_tokens_map.json",
                                      "added_tokens.json",
                                      "vocab.json",
                                      "merges.txt",
                                      "vocab.txt",
                                      "chat_template.jinja",
                                      "generation_config.json"};

[[noreturn]] void invalid(const std::string& what) { throw Error(ErrorCode::invalid_argument, what); }

std::optional<std::string> read_small(const std::string& path) {
  if (!fs::exists(path)) return std::nullopt;
  const FileBytes file = map_file(path);
  return std::string(reinterpret_cast<const char*>(file.data), file.size);
}

TextFiles read_text_files(const std::string& folder) {
  TextFiles texts;
  for (const char* name : kTextFiles)
    if (auto text = read_small((fs::path(folder) / name).string())) texts[name] = std::move(*text);
  return texts;
}

template <class Kind>
Kind named(const char* setting, const std::string& name,
           const std::vector<std::pair<const char*, Kind>>& known) {
  std::string there;
  for (const auto& [text, kind] : known) {
    if (name == text) return kind;
    there += (there.empty() ? "" : ", ") + std::string(text);
  }
  invalid(fmt::format("{} is \"{}\", expected one of: {}", setting, name, there));
}

OptimizerKind optimizer_kind(const std::string& name) {
  return named<OptimizerKind>("optimizer", name,
                              {{"adamw", OptimizerKind::adamw},
                               {"adam", OptimizerKind::adam},
                               {"sgd", OptimizerKind::sgd},
                               {"muon", OptimizerKind::muon}});
}

ScheduleKind schedule_kind(const std::string& name) {
  return named<ScheduleKind>("learning_rate.schedule", name,
                             {{"constant", ScheduleKind::constant},
                              {"cosine", ScheduleKind::cosine},
                              {"linear", ScheduleKind::linear},
                              {"wsd", ScheduleKind::wsd},
                              {"noam", ScheduleKind::noam}});
}

InitialScheme initial_scheme(const std::string& name) {
  return named<InitialScheme>("initialisation", name,
                              {{"automatic", InitialScheme::automatic},
                               {"normal", InitialScheme::normal},
                               {"gpt2", InitialScheme::gpt2},
                               {"truncated_normal", InitialScheme::truncated_normal},
                               {"xavier", InitialScheme::xavier}});
}

Json parse_object(const std::string& text, const std::string& place) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw Error(ErrorCode::corrupt_file, fmt::format("{}: holds no JSON object", place));
  return json;
}

// Biases that the configuration promises and a model from scratch would lack.
void refuse_optional_biases(const Json& config) {
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (config.contains(key) && config[key] == true)
      throw Error(
          ErrorCode::unsupported,
          fmt::format("model: {} is true; a model from scratch has only the biases its family requires",
                      key));
}

RunState state_of(const Json& run, const std::string& place) {
  const auto number = [&](const char* key) -> const Json& {
    if (!run.contains(key) || !run[key].is_number())
      throw Error(ErrorCode::corrupt_file, fmt::format("{}: \"{}\" is missing", place, key));
    return run[key];
  };
  return {number("step").get<int64_t>(), number("best_step").get<int64_t>(),
          number("best_loss").get<double>(), number("data_fingerprint").get<uint64_t>()};
}

}  // namespace

RunLock::RunLock(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  const std::string path = (fs::path(folder) / ".lock").string();
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0)
    throw Error(ErrorCode::io_error,
                fmt::format("{}: cannot write into it: {}", folder, std::strerror(errno)));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  ::close(descriptor_);
  invalid(fmt::format("{}: another process is training there", folder));
}

RunLock::~RunLock() { ::close(descriptor_); }

TrainRun::TrainRun(const TrainSettings& settings, const TrainCallbacks& callbacks,
                   const std::string& checkpoint)
    : settings_(settings), callbacks_(callbacks), lock_(settings.output) {
  runner_ = std::make_unique<Runner>(settings_.threads);
  runner_->bf16_products = named<bool>("products", settings_.products, {{"f32", false}, {"bf16", true}});
  if (!settings_.model.empty()) base_ = open_weights(settings_.model);
  load_texts(checkpoint);
  make_model();
  data_ = read_dataset(settings_, tokenizer_.get(), end_token_, config_.vocab_size);
  held_out_ = even_windows(data_.held_out, settings_.sequence_length, settings_.evaluate_windows);
  const uint64_t fingerprint = data_.train.fingerprint() >> 1;  // a JSON number that any reader can hold
  if (!checkpoint.empty() && state_.data != fingerprint)
    invalid(fmt::format("{}: the data is not what the run began with (fingerprint {:x}, now {:x})",
                        checkpoint, state_.data, fingerprint));
  state_.data = fingerprint;
  trainer_ =
      std::make_unique<Trainer>(config_, *weights_, *runner_, trainer_settings(), batches(), lora_.get());
  if (!checkpoint.empty()) restore(checkpoint);
  log_ = std::make_unique<TrainingLog>((fs::path(settings_.output) / "log.jsonl").string(), state_.step);
}

// The tokenizer: the checkpoint's, one that is named, the base model's, or a new one.
void TrainRun::load_texts(const std::string& checkpoint) {
  if (!checkpoint.empty()) {
    texts_ = read_text_files(checkpoint);
    const std::string path = checkpoint + "/run.json";
    state_ = state_of(parse_object(read_small(path).value_or(""), path), path);
  } else if (!settings_.tokenizer.empty()) {
    texts_ = read_text_files(settings_.tokenizer);
    if (texts_.empty())
      throw Error(ErrorCode::not_found, fmt::format("{}: there is no tokenizer", settings_.tokenizer));
  } else if (base_ != nullptr) {
    texts_ =
        read_text_files(fs::is_directory(settings_.model) ? settings_.model
                                                          : fs::path(settings_.model).parent_path().string());
  } else if (std::none_of(settings_.data.begin(), settings_.data.end(), TokenStream::is_token_file)) {
    if (callbacks_.on_preparation) callbacks_.on_preparation("making a tokenizer", 0, 0);
    TokenizerFiles files =
        make_tokenizer_files(settings_.data, settings_.separator, settings_.new_tokenizer, 0);
    texts_["tokenizer.json"] = std::move(files.tokenizer);
    texts_["tokenizer_config.json"] = std::move(files.config);
  }
  const CompanionFiles companions = [&](std::string_view name) -> std::optional<std::string> {
    const auto at = texts_.find(std::string(name));
    return at == texts_.end() ? std::nullopt : std::optional(at->second);
  };
  if (!has_tokenizer_files(companions)) return;
  tokenizer_ = read_hugging_face_text(companions, "").tokenizer;
  end_token_ = tokenizer_->data().eos;
}

// config.json as it will be written: what the run states, and what follows from the tokenizer.
nlohmann::ordered_json TrainRun::model_json() const {
  if (base_ != nullptr) {
    const std::string folder = fs::is_directory(settings_.model)
                                   ? settings_.model
                                   : fs::path(settings_.model).parent_path().string();
    Json json = parse_object(read_small(folder + "/config.json").value_or(""), folder + "/config.json");
    for (const char* key : {"torch_dtype", "dtype"})
      if (json.contains(key)) json[key] = "float32";
    return json;
  }
  if (settings_.model_config.empty())
    invalid("model is missing: a config.json object, or the folder of a model to go on from");
  Json json = parse_object(settings_.model_config, "model");
  refuse_optional_biases(json);
  if (!json.contains("vocab_size") && tokenizer_ != nullptr) json["vocab_size"] = tokenizer_->vocab_size();
  if (!json.contains("tie_word_embeddings")) json["tie_word_embeddings"] = true;
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"})
    if (!json.contains(key)) json[key] = end_token_ >= 0 ? Json(end_token_) : Json(nullptr);
  json["torch_dtype"] = "float32";
  return json;
}

void TrainRun::make_model() {
  config_json_ = model_json();
  config_ = base_ != nullptr ? read_model_config(*base_)
                             : read_model_config(*config_source("model", nlohmann::json(config_json_)));
  if (!config_.has_output) invalid(fmt::format("{} models predict no next token", config_.family));
  if (config_.is_encoder_decoder())
    invalid(
        fmt::format("{} models learn from pairs of texts, which this command does not read", config_.family));
  if (settings_.sequence_length > config_.max_seq_len)
    invalid(fmt::format("sequence_length is {}, the model's context {}", settings_.sequence_length,
                        config_.max_seq_len));
  if (tokenizer_ != nullptr && tokenizer_->vocab_size() > config_.vocab_size)
    invalid(fmt::format("the tokenizer has {} tokens, the model's vocabulary {}", tokenizer_->vocab_size(),
                        config_.vocab_size));
  weights_ = std::make_unique<Parameters>(config_, base_.get());
  if (base_ != nullptr)
    weights_->copy_from(*base_);
  else
    initialise(*weights_, config_,
               {initial_scheme(settings_.initialisation), settings_.initial_std, settings_.seed},
               runner_->pool);
  if (settings_.lora_rank > 0)
    lora_ = std::make_unique<Lora>(
        *weights_, LoraSettings{settings_.lora_rank, settings_.lora_alpha, settings_.lora_targets,
                                settings_.seed, settings_.model});
  if (texts_.count("generation_config.json") == 0 && tokenizer_ != nullptr) {
    const Json generation = {{"bos_token_id", config_json_["bos_token_id"]},
                             {"eos_token_id", config_json_["eos_token_id"]},
                             {"pad_token_id", config_json_["pad_token_id"]},
                             {"do_sample", settings_.temperature > 0},
                             {"temperature", settings_.temperature > 0 ? settings_.temperature : 1.0}};
    texts_["generation_config.json"] = generation.dump(2) + "\n";
  }
}

TrainerSettings TrainRun::trainer_settings() const {
  const TrainSettings& s = settings_;
  TrainerSettings t;
  t.optimizer = {
      optimizer_kind(s.optimizer), s.beta1, s.beta2, s.eps, s.weight_decay, false, s.momentum, false};
  t.schedule = {schedule_kind(s.schedule), s.learning_rate, s.min_factor,
                s.decay_fraction,          s.warm_up,       s.steps};
  t.clip = s.clip;
  t.dropout = s.dropout;
  t.label_smoothing = s.label_smoothing;
  t.seed = s.seed;
  t.accumulate = s.accumulate;
  t.keep = s.recompute ? Keep::block_inputs : Keep::everything;
  return t;
}

BatchSource TrainRun::batches() const {
  return [this](int64_t step, int64_t part) {
    return draw_windows(data_.train, {settings_.batch, settings_.sequence_length}, settings_.seed,
                        step * settings_.accumulate + part);
  };
}

void TrainRun::restore(const std::string& checkpoint) {
  read_checkpoint(checkpoint, {*weights_, trainer_->optimizer(), lora_.get()});
  if (trainer_->steps_made() != state_.step)
    throw Error(ErrorCode::corrupt_file, fmt::format("{}: run.json says step {}, optimizer.safetensors {}",
                                                     checkpoint, state_.step, trainer_->steps_made()));
  trainer_->restored();
  result_.checkpoint = checkpoint;
}

TrainPlan TrainRun::plan() const {
  TrainPlan plan;
  plan.family = config_.family;
  plan.parameters = weights_->count();
  plan.learning = trainer_->trained().count();
  plan.vocab_size = config_.vocab_size;
  plan.train_tokens = data_.train.size();
  plan.held_out_tokens = data_.held_out.size();
  plan.first_step = trainer_->steps_made();
  plan.steps = settings_.steps;
  plan.tokens_per_step = settings_.batch * settings_.sequence_length * settings_.accumulate;
  return plan;
}

TrainResult TrainRun::run() {
  if (callbacks_.on_plan) callbacks_.on_plan(plan());
  if (trainer_->steps_made() == 0) evaluate();
  const auto cancelled = [&] { return callbacks_.cancel != nullptr && callbacks_.cancel->load(); };
  while (trainer_->steps_made() < settings_.steps && !cancelled()) one_step();
  result_.finished = trainer_->steps_made() >= settings_.steps;
  if (result_.checkpoint != checkpoint_path(settings_.output, trainer_->steps_made())) save();
  if (result_.finished) {
    result_.model = (fs::path(settings_.output) / "model").string();
    TextFiles texts = texts_;
    texts["config.json"] = config_json_.dump(2) + "\n";
    write_model_folder(result_.model, *weights_, texts);
  }
  result_.step = trainer_->steps_made();
  result_.loss = log_->smoothed_loss();
  if (!log_->curves().held_out.empty()) result_.held_out_loss = log_->curves().held_out.back().loss;
  return result_;
}

void TrainRun::one_step() {
  const StepReport step = trainer_->step();
  if (step.non_finite) fail_not_finite(step);
  const int64_t made = step.step + 1;
  log_->write({{"step", made},
               {"loss", step.loss},
               {"gradient_norm", step.gradient_norm},
               {"learning_rate", step.learning_rate},
               {"tokens", step.tokens},
               {"seconds", std::round(step.seconds * 1e6) / 1e6}});
  result_.seconds += step.seconds;
  report(step, step.seconds);
  const auto due = [&](int64_t every) { return every > 0 && made % every == 0; };
  const bool last = made == settings_.steps;
  if (due(settings_.evaluate_every) || due(settings_.checkpoint_every) || last) evaluate();
  if (due(settings_.sample_every)) sample();
  if (due(settings_.checkpoint_every) || last) save();
}

void TrainRun::report(const StepReport& step, double seconds) {
  if (!callbacks_.on_step) return;
  seconds_per_step_ = seconds_per_step_ == 0 ? seconds : 0.95 * seconds_per_step_ + 0.05 * seconds;
  TrainProgress p;
  p.step = step.step + 1;
  p.steps = settings_.steps;
  p.loss = step.loss;
  p.smoothed_loss = log_->smoothed_loss();
  p.gradient_norm = step.gradient_norm;
  p.learning_rate = step.learning_rate;
  p.tokens_per_second = static_cast<double>(step.tokens) / seconds_per_step_;
  p.seconds_left = static_cast<double>(p.steps - p.step) * seconds_per_step_;
  const RunCurves& curves = log_->curves();
  if (!curves.held_out.empty()) p.held_out_loss = curves.held_out.back().loss;
  p.sparkline = sparkline(curves.training, 24);
  callbacks_.on_step(p);
}

void TrainRun::evaluate() {
  if (held_out_.empty()) return;
  const double loss = trainer_->evaluate(held_out_, settings_.batch);
  log_->write({{"step", trainer_->steps_made()}, {"held_out_loss", loss}});
  if (callbacks_.on_evaluation) callbacks_.on_evaluation(trainer_->steps_made(), loss);
}

void TrainRun::sample() {
  if (tokenizer_ == nullptr) return;
  std::vector<int> prompt = tokenizer_->encode(settings_.sample_prompt, false, true);
  if (end_token_ >= 0) prompt.insert(prompt.begin(), end_token_);
  if (prompt.empty() || static_cast<int64_t>(prompt.size()) > config_.max_seq_len) return;
  const std::vector<int> ends = end_token_ >= 0 ? std::vector{end_token_} : std::vector<int>{};
  Sequence sequence(trainer_->model(), {ProductClass::f32, ProductClass::f32});
  GenerateSettings generation;
  generation.max_tokens = static_cast<int>(settings_.sample_tokens);
  generation.sampling.temperature = static_cast<float>(settings_.temperature);
  generation.sampling.seed = settings_.seed;
  const GenerationContext context{*runner_, *tokenizer_, ends, static_cast<int>(config_.max_seq_len)};
  const std::string text = settings_.sample_prompt + generate(context, sequence, prompt, generation, {}).text;
  log_->write({{"step", trainer_->steps_made()}, {"sample", text}});
  if (callbacks_.on_sample) callbacks_.on_sample(trainer_->steps_made(), text);
}

TextFiles TrainRun::texts_with_state() const {
  TextFiles texts = texts_;
  texts["config.json"] = config_json_.dump(2) + "\n";
  Json run = {{"step", state_.step},
              {"best_step", state_.best_step},
              {"best_loss", state_.best_loss},
              {"data_fingerprint", state_.data},
              {"settings", Json::parse(to_json(settings_))}};
  texts["run.json"] = run.dump(2) + "\n";
  return texts;
}

void TrainRun::save() {
  state_.step = trainer_->steps_made();
  const std::vector<CurvePoint>& held_out = log_->curves().held_out;
  if (!held_out.empty() && held_out.back().step == state_.step &&
      (state_.best_step < 0 || held_out.back().loss < state_.best_loss)) {
    state_.best_step = state_.step;
    state_.best_loss = held_out.back().loss;
  }
  try {
    write_checkpoint(settings_.output, {*weights_, trainer_->optimizer(), lora_.get()}, texts_with_state());
    draw_curves();
  } catch (const Error& e) {
    throw Error(e.code(), fmt::format("{}; {}", e.what(), last_good()));
  }
  result_.checkpoint = checkpoint_path(settings_.output, state_.step);
  remove_old_checkpoints(settings_.output, settings_.keep, state_.best_step);
  if (callbacks_.on_checkpoint) callbacks_.on_checkpoint(state_.step, result_.checkpoint);
}

void TrainRun::draw_curves() const {
  OutputFile file((fs::path(settings_.output) / "loss.svg").string());
  file.write(loss_svg(log_->curves(),
                      fmt::format("{}, {:.1f} M parameters, {} tokens per step", config_.family,
                                  static_cast<double>(weights_->count()) / 1e6, plan().tokens_per_step)));
  file.commit();
}

std::string TrainRun::last_good() const {
  const std::vector<int64_t> steps = list_checkpoints(settings_.output);
  if (steps.empty()) return "there is no checkpoint yet";
  return "the last good checkpoint is " + checkpoint_path(settings_.output, steps.back());
}

void TrainRun::fail_not_finite(const StepReport& step) const {
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("step {}: the loss is {}, the gradient norm {}; first at {}; no weight was changed; {}",
                  step.step + 1, step.loss, step.gradient_norm, step.non_finite->text(), last_good()));
}

}  // namespace liuli
