#include "train/training_log.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "core/output_file.h"
#include "liuli/error.h"

namespace liuli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kKeep = 0.98;  // as smoothed() in loss_plot

std::string text_of(const Json& line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

TrainingLog::TrainingLog(const std::string& path, int64_t step) : path_(path) {
  std::string kept;
  std::ifstream before(path);
  for (std::string text; step > 0 && std::getline(before, text);) {
    const Json line = Json::parse(text, nullptr, false);  // the last one may be half there
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) continue;
    if (line["step"].get<int64_t>() > step) continue;
    take(line);
    kept += text_of(line);
  }
  OutputFile file(path);
  file.write(kept);
  file.commit();
  file_ = std::fopen(path.c_str(), "ae");
  if (file_ == nullptr)
    throw Error(ErrorCode::io_error, fmt::format("{}: cannot open it: {}", path, std::strerror(errno)));
}

TrainingLog::~TrainingLog() {
  if (file_ != nullptr) std::fclose(file_);
}

void TrainingLog::write(const Json& line) {
  const std::string text = text_of(line);
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0)
    throw Error(ErrorCode::io_error, fmt::format("{}: cannot write it: {}", path_, std::strerror(errno)));
  take(line);
}

void TrainingLog::take(const Json& line) {
  const auto number = [&](const char* key) {
    const auto at = line.find(key);
    return at != line.end() && at->is_number() ? std::optional(at->get<double>()) : std::nullopt;
  };
  const auto step = line["step"].get<int64_t>();
  if (const auto held_out = number("held_out_loss")) curves_.held_out.push_back({step, *held_out});
  const auto loss = number("loss");
  if (!loss) return;
  curves_.training.push_back({step, *loss});
  sum_ = kKeep * sum_ + (1 - kKeep) * *loss;
  weight_ = kKeep * weight_ + (1 - kKeep);
}

}  // namespace liuli
