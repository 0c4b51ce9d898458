#include "train/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/output_file.h"
#include "formats/safetensors.h"
#include "liuli/error.h"

namespace liuli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "step-";
constexpr const char *kWeights = "model.safetensors", *kAdapters = "adapter_model.safetensors",
                     *kOptimizer = "optimizer.safetensors";

[[noreturn]] void io_failure(const std::string& path, const char* action, int error) {
  throw Error(ErrorCode::io_error, fmt::format("{}: cannot {} it: {}", path, action, std::strerror(error)));
}

// Waits until a file's bytes (a folder's entries) are on the disk and not only on their way.
void force_to_disk(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) io_failure(path, "open", errno);
  const int result = ::fsync(descriptor), error = errno;
  ::close(descriptor);
  if (result != 0) io_failure(path, "force to the disk", error);
}

SafetensorsSpec plain(const std::string& name, const std::vector<int64_t>& shape) {
  return {name, DType::f32, shape};
}

std::vector<int64_t> file_shape(const Parameter& p) {
  std::vector<int64_t> shape = p.shape;
  if (p.spec.transposed) std::reverse(shape.begin(), shape.end());
  return shape;
}

void write_weights(const std::string& path, const Parameters& weights) {
  std::vector<SafetensorsSpec> specs;
  for (const Parameter& p : weights.all()) specs.push_back(plain(p.name, file_shape(p)));
  SafetensorsWriter writer(path, specs, {{"format", "pt"}});
  for (const Parameter& p : weights.all()) {
    const std::vector<float> values = weights.file_form(p);
    writer.append(values.data(), values.size() * sizeof(float));
  }
  writer.finish();
}

// PEFT's names. Folders of a bare model (GPT-2's) lack the wrapper that the class with an output matrix has.
std::string peft_name(const std::string& adapter) {
  const char* wrapper = adapter.rfind("model.", 0) == 0 ? "" : "transformer.";
  return fmt::format("base_model.model.{}{}.weight", wrapper, adapter);
}

void write_adapters(const std::string& folder, Lora& lora, bool transposed) {
  std::vector<SafetensorsSpec> specs;
  for (const Parameter& p : lora.adapters().all()) specs.push_back(plain(peft_name(p.name), p.shape));
  SafetensorsWriter writer(folder + "/" + kAdapters, specs, {{"format", "pt"}});
  for (const Parameter& p : lora.adapters().all())
    writer.append(p.value, static_cast<size_t>(p.size) * sizeof(float));
  writer.finish();
  const nlohmann::ordered_json config = {{"peft_type", "LORA"},
                                         {"task_type", "CAUSAL_LM"},
                                         {"base_model_name_or_path", lora.settings().base},
                                         {"r", lora.settings().rank},
                                         {"lora_alpha", lora.settings().alpha},
                                         {"lora_dropout", 0.0},
                                         {"target_modules", lora.target_modules()},
                                         {"bias", "none"},
                                         {"fan_in_fan_out", transposed},
                                         {"inference_mode", true}};
  OutputFile file(folder + "/adapter_config.json");
  file.write(config.dump(2) + "\n");
  file.commit();
}

// Gemma's files hold γ − 1, which may round: such values are kept as they are as well.
bool rounds_in_file(const Parameter& p) { return p.spec.plus_one; }

// Everything the optimiser's file holds, by name: moments of what learns, and values that must not be rounded.
void for_each_state(const CheckpointParts& parts,
                    const std::function<void(const std::string&, float*, int64_t)>& f) {
  Parameters& trained = parts.lora != nullptr ? parts.lora->adapters() : parts.weights;
  auto moments = [&](const char* prefix, std::vector<std::vector<float>>& all) {
    for (size_t i = 0; i < all.size(); i++)
      if (!all[i].empty())
        f(prefix + trained.all()[i].name, all[i].data(), static_cast<int64_t>(all[i].size()));
  };
  moments("first.", parts.optimizer.first_moments());
  moments("second.", parts.optimizer.second_moments());
  if (parts.lora == nullptr)
    for (Parameter& p : parts.weights.all())
      if (rounds_in_file(p)) f("value." + p.name, p.value, p.size);
}

void write_optimizer(const std::string& path, const CheckpointParts& parts) {
  std::vector<SafetensorsSpec> specs;
  for_each_state(parts,
                 [&](const std::string& name, float*, int64_t n) { specs.push_back(plain(name, {n})); });
  SafetensorsWriter writer(path, specs, {{"steps", std::to_string(parts.optimizer.steps())}});
  for_each_state(parts, [&](const std::string&, float* values, int64_t n) {
    writer.append(values, static_cast<size_t>(n) * sizeof(float));
  });
  writer.finish();
}

void write_texts(const std::string& folder, const TextFiles& texts) {
  for (const auto& [name, text] : texts) {
    OutputFile file(folder + "/" + name);
    file.write(text);
    file.commit();
  }
}

// Fills a folder under a passing name and gives it its own only when all of it is on the disk.
void write_folder(const fs::path& path, const std::function<void(const std::string&)>& fill) {
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path part = parent / fmt::format(".{}.{}.part", path.filename().string(), ::getpid());
  const fs::path old = parent / fmt::format(".{}.{}.old", path.filename().string(), ::getpid());
  std::error_code ignored;
  try {
    fs::create_directories(part);
    fill(part.string());
    for (const auto& entry : fs::directory_iterator(part)) force_to_disk(entry.path().string());
    force_to_disk(part.string());
    if (fs::exists(path)) fs::rename(path, old);
    fs::rename(part, path);
    force_to_disk(parent.string());
  } catch (const fs::filesystem_error& e) {
    fs::remove_all(part, ignored);
    throw Error(ErrorCode::io_error,
                fmt::format("{}: cannot write it: {}", path.string(), e.code().message()));
  } catch (...) {
    fs::remove_all(part, ignored);
    throw;
  }
  fs::remove_all(old, ignored);
}

void copy_into(const SafetensorsFile& file, const std::string& name, float* to, int64_t n) {
  if (file.find(name) == nullptr)
    throw Error(ErrorCode::corrupt_file, fmt::format("{}: tensor {} is missing", file.path(), name));
  const std::vector<float> values = file.floats(name);
  if (static_cast<int64_t>(values.size()) != n)
    throw Error(ErrorCode::corrupt_file, fmt::format("{}: tensor {} has {} values, the run needs {}",
                                                     file.path(), name, values.size(), n));
  std::copy(values.begin(), values.end(), to);
}

int64_t steps_of(const SafetensorsFile& file) {
  const auto at = file.metadata().find("steps");
  if (at == file.metadata().end() || at->second.empty() ||
      at->second.find_first_not_of("0123456789") != std::string::npos || at->second.size() > 15)
    throw Error(ErrorCode::corrupt_file,
                fmt::format("{}: does not say how many steps were made", file.path()));
  return std::stoll(at->second);
}

}  // namespace

std::string checkpoint_path(const std::string& folder, int64_t step) {
  return (fs::path(folder) / fmt::format("{}{:06}", kPrefix, step)).string();
}

void write_checkpoint(const std::string& folder, const CheckpointParts& parts, const TextFiles& texts) {
  write_folder(checkpoint_path(folder, parts.optimizer.steps()), [&](const std::string& path) {
    if (parts.lora != nullptr) {
      const auto& all = parts.weights.all();
      write_adapters(path, *parts.lora,
                     std::any_of(all.begin(), all.end(), [](const auto& p) { return p.spec.transposed; }));
    } else {
      write_weights(path + "/" + kWeights, parts.weights);
    }
    write_optimizer(path + "/" + kOptimizer, parts);
    write_texts(path, texts);
  });
}

void write_model_folder(const std::string& path, const Parameters& weights, const TextFiles& texts) {
  write_folder(path, [&](const std::string& folder) {
    write_weights(folder + "/" + kWeights, weights);
    write_texts(folder, texts);
  });
}

void read_checkpoint(const std::string& path, const CheckpointParts& parts) {
  if (parts.lora != nullptr) {
    const SafetensorsFile file(path + "/" + kAdapters);
    for (Parameter& p : parts.lora->adapters().all()) copy_into(file, peft_name(p.name), p.value, p.size);
  } else {
    const std::unique_ptr<WeightSource> source = open_weights(path);
    parts.weights.copy_from(*source);
  }
  const SafetensorsFile file(path + "/" + kOptimizer);
  for_each_state(parts, [&](const std::string& name, float* to, int64_t n) { copy_into(file, name, to, n); });
  parts.optimizer.set_steps(steps_of(file));
}

std::vector<int64_t> list_checkpoints(const std::string& folder) {
  std::vector<int64_t> steps;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    const std::string name = entry.path().filename().string();
    const std::string number = name.rfind(kPrefix, 0) == 0 ? name.substr(std::strlen(kPrefix)) : "";
    if (!number.empty() && number.size() <= 15 &&
        number.find_first_not_of("0123456789") == std::string::npos && entry.is_directory())
      steps.push_back(std::stoll(number));
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

void remove_old_checkpoints(const std::string& folder, int64_t keep, int64_t best) {
  std::error_code ignored;
  std::vector<int64_t> steps = list_checkpoints(folder);
  const size_t last = std::min(steps.size(), static_cast<size_t>(std::max<int64_t>(keep, 1)));
  steps.resize(steps.size() - last);
  for (const int64_t step : steps) {
    if (step == best) continue;
    // Removed under another name: a folder called step-… is complete, also one that is going away.
    const fs::path path = checkpoint_path(folder, step);
    fs::rename(path, path.parent_path() / fmt::format(".{}.old", path.filename().string()), ignored);
  }
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(std::string(".") + kPrefix, 0) == 0 && (name.ends_with(".part") || name.ends_with(".old")))
      fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace liuli
