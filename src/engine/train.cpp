#include "liuli/train.h"

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/output_file.h"
#include "engine/train_run.h"
#include "liuli/error.h"

namespace liuli {
namespace {

namespace fs = std::filesystem;

void make_absolute(std::string& path) {
  if (!path.empty()) path = fs::absolute(path).lexically_normal().string();
}

// A run may be resumed from anywhere.
void make_paths_absolute(TrainSettings& s) {
  make_absolute(s.output);
  make_absolute(s.model);
  make_absolute(s.tokenizer);
  for (auto* files : {&s.data, &s.held_out_data})
    for (std::string& file : *files) make_absolute(file);
}

TrainSettings stored_settings(const std::string& checkpoint) {
  const std::string path = checkpoint + "/run.json";
  const FileBytes bytes = map_file(path);
  const auto run = nlohmann::ordered_json::parse(bytes.data, bytes.data + bytes.size, nullptr, false);
  if (!run.is_object() || !run.contains("settings"))
    throw Error(ErrorCode::corrupt_file, fmt::format("{}: has no settings", path));
  return parse_train_settings(run["settings"].dump(), path);
}

void write_text(const fs::path& path, const std::string& text) {
  OutputFile file(path.string());
  file.write(text);
  file.commit();
}

}  // namespace

TokenizerReport train_tokenizer(const std::vector<std::string>& data, const std::string& folder,
                                const TokenizerSettings& settings) {
  const TokenizerFiles files = make_tokenizer_files(data, "", settings, 0);
  std::error_code error;
  fs::create_directories(folder, error);
  write_text(fs::path(folder) / "tokenizer.json", files.tokenizer);
  write_text(fs::path(folder) / "tokenizer_config.json", files.config);
  return files.report;
}

TrainResult train(const TrainSettings& given, const TrainCallbacks& callbacks) {
  TrainSettings settings = given;
  if (settings.output.empty())
    throw Error(ErrorCode::invalid_argument, "output is missing: the run's folder");
  make_paths_absolute(settings);
  const std::vector<int64_t> there = list_checkpoints(settings.output);
  if (!there.empty())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: holds a run already, up to step {}: go on with --resume, or choose another output",
                    given.output, there.back()));
  return TrainRun(settings, callbacks).run();
}

TrainResult resume_training(const std::string& folder, const TrainCallbacks& callbacks, int threads,
                            int64_t steps) {
  const std::vector<int64_t> there = list_checkpoints(folder);
  if (there.empty())
    throw Error(ErrorCode::not_found, fmt::format("{}: holds no checkpoint to go on from", folder));
  const std::string checkpoint = checkpoint_path(fs::absolute(folder).string(), there.back());
  TrainSettings settings = stored_settings(checkpoint);
  settings.output = fs::absolute(folder).lexically_normal().string();  // it may have been moved
  if (threads >= 0) settings.threads = threads;
  if (steps >= 0) settings.steps = steps;
  return TrainRun(settings, callbacks, checkpoint).run();
}

}  // namespace liuli
