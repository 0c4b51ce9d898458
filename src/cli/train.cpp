// liuli train: a model learns from text.
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include <fmt/format.h>

#include "cli/exit_codes.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "cli/train_progress.h"
#include "liuli/error.h"
#include "liuli/train.h"

namespace liuli::cli {
namespace {

// Options win over run.json; what was not given leaves it as it is.
struct TrainOptions {
  std::string config, resume;
  TrainSettings given;
  NewModel shape;
  bool has_shape = false;
  CLI::App* command = nullptr;
};

std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorCode::not_found, fmt::format("{}: cannot open it", path));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_given(const TrainOptions& options, const char* name) {
  return options.command->get_option(name)->count() > 0;
}

TrainSettings settings_of(const TrainOptions& o) {
  TrainSettings s;
  if (!o.config.empty()) s = parse_train_settings(read_whole(o.config), o.config);
  const auto take = [&](const char* name, auto TrainSettings::*member) {
    if (is_given(o, name)) s.*member = o.given.*member;
  };
  take("--data", &TrainSettings::data);
  take("--held-out-data", &TrainSettings::held_out_data);
  take("--held-out", &TrainSettings::held_out);
  take("--model", &TrainSettings::model);
  take("--tokenizer", &TrainSettings::tokenizer);
  take("--output", &TrainSettings::output);
  take("--steps", &TrainSettings::steps);
  take("--batch", &TrainSettings::batch);
  take("--length", &TrainSettings::sequence_length);
  take("--accumulate", &TrainSettings::accumulate);
  take("--lr", &TrainSettings::learning_rate);
  take("--warm-up", &TrainSettings::warm_up);
  take("--schedule", &TrainSettings::schedule);
  take("--optimizer", &TrainSettings::optimizer);
  take("--dropout", &TrainSettings::dropout);
  take("--products", &TrainSettings::products);
  take("--seed", &TrainSettings::seed);
  take("--threads", &TrainSettings::threads);
  take("--evaluate-every", &TrainSettings::evaluate_every);
  take("--checkpoint-every", &TrainSettings::checkpoint_every);
  take("--sample-every", &TrainSettings::sample_every);
  take("--sample-prompt", &TrainSettings::sample_prompt);
  take("--lora-rank", &TrainSettings::lora_rank);
  take("--lora-targets", &TrainSettings::lora_targets);
  if (is_given(o, "--vocab-size")) s.new_tokenizer.vocab_size = o.given.new_tokenizer.vocab_size;
  if (is_given(o, "--tokenizer-kind")) s.new_tokenizer.kind = o.given.new_tokenizer.kind;
  if (is_given(o, "--family")) s.model_config = make_model_config(o.shape);
  for (auto* files : {&s.data, &s.held_out_data})
    for (std::string& file : *files) file = resolve_data(file);
  if (!s.model.empty()) s.model = resolve_model(s.model);
  return s;
}

nlohmann::ordered_json to_json(const TrainResult& r) {
  nlohmann::ordered_json json = {{"finished", r.finished}, {"step", r.step}, {"loss", r.loss}};
  if (r.held_out_loss) json["held_out_loss"] = *r.held_out_loss;
  json["checkpoint"] = r.checkpoint;
  if (!r.model.empty()) json["model"] = r.model;
  json["seconds"] = r.seconds;
  return json;
}

TrainCallbacks callbacks_for(TrainDisplay& display) {
  TrainCallbacks c;
  c.on_plan = [&](const TrainPlan& plan) { display.plan(plan); };
  c.on_step = [&](const TrainProgress& p) { display.step(p); };
  c.on_evaluation = [&](int64_t step, double loss) { display.evaluation(step, loss); };
  c.on_sample = [&](int64_t step, const std::string& text) { display.sample(step, text); };
  c.on_checkpoint = [&](int64_t step, const std::string& path) { display.checkpoint(step, path); };
  c.on_preparation = [&](const std::string& what, int64_t, int64_t) { display.note(what); };
  c.cancel = &InterruptGuard::flag();
  return c;
}

int report_end(const TrainResult& r, const std::string& folder, bool json) {
  if (json) fmt::print("{}\n", json_text(to_json(r)));
  if (!r.finished) {
    fmt::print(stderr, "stopped after step {}: {}\ngo on with: liuli train --resume {}\n", r.step,
               r.checkpoint, folder);
    return kExitCancelled;
  }
  if (!json)
    fmt::print("{}: loss {:.4f}{}, {:.0f} s of steps\nlog.jsonl and loss.svg are in {}\n", r.model, r.loss,
               r.held_out_loss ? fmt::format(", held out {:.4f}", *r.held_out_loss) : "", r.seconds, folder);
  return 0;
}

int train_action(const TrainOptions& options, bool json) {
  const InterruptGuard guard;
  TrainDisplay display;
  const TrainCallbacks callbacks = callbacks_for(display);
  TrainResult result;
  std::string folder = options.resume;
  if (!options.resume.empty()) {
    if (is_given(options, "--products"))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--products {}: a run that is resumed keeps the products of {}'s checkpoint",
                              options.given.products, options.resume));
    result = resume_training(options.resume, callbacks,
                             is_given(options, "--threads") ? options.given.threads : -1,
                             is_given(options, "--steps") ? options.given.steps : -1);
  } else {
    const TrainSettings settings = settings_of(options);
    folder = settings.output;
    result = train(settings, callbacks);
  }
  display.clear();
  return report_end(result, folder, json);
}

void add_model_options(CLI::App& c, TrainOptions& o) {
  c.add_option("--family", o.shape.family, "a new model: llama, qwen2, qwen3, gemma3, olmo2, gpt2");
  c.add_option("--d-model", o.shape.d_model, "its width")->capture_default_str();
  c.add_option("--layers", o.shape.n_layers, "its blocks")->capture_default_str();
  c.add_option("--heads", o.shape.n_heads, "attention heads")->capture_default_str();
  c.add_option("--kv-heads", o.shape.n_kv_heads, "key and value heads; 0: as many");
  c.add_option("--d-ff", o.shape.d_ff, "width of the feed-forward; 0: the usual");
  c.add_option("--context", o.shape.max_seq_len, "the most tokens it will take")->capture_default_str();
  c.add_option("--model", o.given.model, "a Hugging Face folder to go on from, in place of a new model");
  c.add_option("--tokenizer", o.given.tokenizer,
               "a folder with tokenizer.json; else one is made from the data");
  c.add_option("--tokenizer-kind", o.given.new_tokenizer.kind,
               "of one that is made: qwen2, gpt-2, characters")
      ->capture_default_str();
  c.add_option("--vocab-size", o.given.new_tokenizer.vocab_size, "of one that is made")
      ->capture_default_str();
}

void add_run_options(CLI::App& c, TrainOptions& o) {
  TrainSettings& s = o.given;
  c.add_option("--data", s.data,
               "text (.txt, .jsonl with \"text\") or tokens (.tokens, .npy); also in the cache's data folder")
      ->type_name("FILE");
  c.add_option("--held-out-data", s.held_out_data, "files for the held-out loss")->type_name("FILE");
  c.add_option("--held-out", s.held_out, "else this part of the documents")->capture_default_str();
  c.add_option("-o,--output", s.output, "the run's folder: checkpoints, log.jsonl, loss.svg, model")
      ->type_name("FOLDER");
  c.add_option("--steps", s.steps, "optimiser steps")->capture_default_str();
  c.add_option("--batch", s.batch, "windows per batch")->capture_default_str();
  c.add_option("--length", s.sequence_length, "tokens per window")->capture_default_str();
  c.add_option("--accumulate", s.accumulate, "batches per step")->capture_default_str();
  c.add_option("--lr", s.learning_rate, "peak learning rate")->capture_default_str();
  c.add_option("--warm-up", s.warm_up, "steps of rising rate")->capture_default_str();
  c.add_option("--schedule", s.schedule, "cosine, wsd, linear, constant, noam")->capture_default_str();
  c.add_option("--optimizer", s.optimizer, "adamw, adam, sgd, muon")->capture_default_str();
  c.add_option("--dropout", s.dropout, "on branches and embeddings")->capture_default_str();
  c.add_option("--products", s.products, "f32; or bf16: matrix products round their operands, sums stay f32")
      ->capture_default_str();
  c.add_option("--seed", s.seed, "of weights, windows, dropout and samples")->capture_default_str();
  c.add_option("--threads", s.threads, "0: every CPU; changes no bit")->capture_default_str();
  c.add_option("--evaluate-every", s.evaluate_every, "steps; 0: never")->capture_default_str();
  c.add_option("--checkpoint-every", s.checkpoint_every, "steps; 0: only at the end")->capture_default_str();
  c.add_option("--sample-every", s.sample_every, "steps; 0: never")->capture_default_str();
  c.add_option("--sample-prompt", s.sample_prompt, "what samples begin with");
  c.add_option("--lora-rank", s.lora_rank, "learn adapters of this rank instead of the weights");
  c.add_option("--lora-targets", s.lora_targets, "matrices with adapters: q k v o gate up down");
}

}  // namespace

void add_train_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<TrainOptions>();
  auto* command = app.add_subcommand("train", "train a model, from nothing or from another one");
  command->group("Training");
  options->command = command;
  command->add_option("--config", options->config, "run.json: every setting by name; options win over it")
      ->type_name("FILE");
  command
      ->add_option("--resume", options->resume,
                   "go on from the newest checkpoint of a run: the same bits as without the stop")
      ->type_name("FOLDER");
  add_model_options(*command, *options);
  add_run_options(*command, *options);
  add_json_flag(*command, program);
  command->footer(
      "Ctrl-C finishes the step, writes a checkpoint and says how to go on. A checkpoint is a model "
      "folder.\n\n"
      "Examples:\n"
      "  liuli train --config examples/train/tang.json\n"
      "  liuli train --family llama --data poems.jsonl --tokenizer-kind characters -o runs/poems\n"
      "  liuli train --model smollm2-folder --lora-rank 8 --data notes.txt --lr 2e-4 -o runs/notes\n"
      "  liuli train --resume runs/poems");
  command->callback([options, &program] {
    program.action = [options, &program] { return train_action(*options, program.json); };
  });
}

}  // namespace liuli::cli
