// Experiments from the outside: loads the model they may look at, and runs them.
#include "liuli/lab.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "engine/engine_parts.h"
#include "trace/lens.h"
#include "train/lab/experiments.h"

namespace liuli {
namespace {

class LoadedModel final : public lab::RealModel {
 public:
  LoadedModel(const std::string& path, int threads) : path_(path), engine_(load(path, threads)) {
    engine_.parts().require_logits("the lab");
  }
  const ModelConfig& config() const override { return engine_.config(); }
  std::string file_name() const override { return std::filesystem::path(path_).filename().string(); }
  std::vector<int> tokenize(std::string_view text) const override { return engine_.tokenize(text, false); }
  std::string token_text(int id) const override { return engine_.token_text(id); }
  std::vector<TracedTensor> trace(const std::vector<int>& ids,
                                  const std::vector<std::string>& points) override {
    return engine_.trace(ids, points);
  }
  void logits(const std::vector<int>& ids, const std::vector<Hook>& hooks,
              const std::function<void(int, std::span<const float>)>& on_row) override {
    engine_.logits(ids, on_row, 512, {}, hooks);
  }
  std::vector<std::vector<float>> lens(const std::vector<std::vector<float>>& rows) override {
    EngineParts& parts = engine_.parts();
    const Rows logits = lens_logits(*parts.model, *parts.runner, rows, parts.classes.prompt);
    std::vector<std::vector<float>> values;
    for (int64_t i = 0; i < logits.n; i++) values.emplace_back(logits.row(i), logits.row(i) + logits.width);
    return values;
  }
  std::vector<float> weight(const std::string& name) override {
    const std::vector<WeightInfo> all = engine_.weights();
    const bool there =
        std::any_of(all.begin(), all.end(), [&](const WeightInfo& w) { return w.name == name; });
    return there ? engine_.weight(name).values : std::vector<float>{};
  }

 private:
  static Engine load(const std::string& path, int threads) {
    LoadSettings settings;
    settings.threads = threads;
    return Engine::load(path, settings);
  }
  std::string path_;
  Engine engine_;
};

const lab::Experiment& find(const std::string& name) {
  const auto all = lab::experiments();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const lab::Experiment& e) { return name == e.name; });
  if (it != all.end()) return *it;
  std::string names;
  for (const lab::Experiment& e : all) names += fmt::format("{}{}", names.empty() ? "" : ", ", e.name);
  throw Error(ErrorCode::invalid_argument, fmt::format("no experiment \"{}\"; there are {}", name, names));
}

LabReport run_one(const lab::Experiment& experiment, lab::Bench& bench) {
  const auto start = std::chrono::steady_clock::now();
  LabReport report;
  report.name = experiment.name;
  report.seed = bench.settings.seed;
  report.quick = bench.settings.quick;
  report.mutated = bench.settings.mutate;
  report.threads = bench.threads;
  if (bench.model != nullptr) report.model = bench.model->file_name();
  experiment.run(bench, report);
  report.verdict = lab::judge(report.checks);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace

std::vector<LabReport> run_lab(const std::vector<std::string>& names, const LabSettings& settings) {
  for (const std::string& name : names) find(name);  // before any work
  if (settings.threads < 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("threads is {}, expected 0 (all) or more", settings.threads));
  const int threads = settings.threads > 0 ? settings.threads : usable_cpus();
  std::unique_ptr<LoadedModel> model;
  if (!settings.model.empty()) model = std::make_unique<LoadedModel>(settings.model, threads);
  Runner runner(1);
  std::vector<LabReport> reports;
  for (const std::string& name : names) {
    LabSettings mine = settings;
    if (settings.on_progress)
      mine.on_progress = [&](const std::string& what, double done) {
        settings.on_progress(name + ": " + what, done);
      };
    lab::Bench bench{mine, runner, threads, model.get()};
    reports.push_back(run_one(find(name), bench));
  }
  return reports;
}

}  // namespace liuli
