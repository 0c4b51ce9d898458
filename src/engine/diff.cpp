#include "report/diff.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/engine_parts.h"
#include "liuli/diff.h"

namespace liuli {
namespace {

void check_settings(const DiffSettings& settings) {
  const auto refuse_negative = [](const char* name, double value) {
    if (!(value >= 0))
      throw Error(ErrorCode::invalid_argument, fmt::format("{} is {}, expected 0 or more", name, value));
  };
  refuse_negative("trace_positions", settings.trace_positions);
  refuse_negative("threshold", settings.threshold);
  refuse_negative("worst", settings.worst);
  refuse_negative("chunk", settings.chunk);
}

int context_of(int asked, int64_t longest) {
  if (asked == 0) return static_cast<int>(std::min(longest, kLongestDefaultContext));
  if (asked < 0 || asked > longest)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("context is {}, expected 1…{} (the shorter of the two models')", asked, longest));
  return asked;
}

void check_model(const Engine& engine) {
  const ModelConfig& config = engine.config();
  if (config.has_output && !config.is_encoder_decoder()) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: {} models predict no next token of a text, diff compares such predictions",
                          engine.parts().path, config.family));
}

}  // namespace

DiffReport diff(Engine& engine, Engine& reference, const std::vector<int>& ids,
                const DiffSettings& settings) {
  check_model(engine);
  check_model(reference);
  const ModelConfig &a = engine.config(), &b = reference.config();
  if (a.vocab_size != b.vocab_size)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} has a vocabulary of {} tokens, {} one of {}: their predictions cannot be compared",
                    engine.parts().path, a.vocab_size, reference.parts().path, b.vocab_size));
  check_settings(settings);
  DiffSettings checked = settings;
  checked.context = context_of(settings.context, std::min(a.max_seq_len, b.max_seq_len));
  engine.parts().check_tokens(ids, 0, static_cast<int64_t>(ids.size()));  // windows make any length fit
  EngineParts &x = engine.parts(), &y = reference.parts();
  return compare_runs({*x.model, *x.runner, x.classes}, {*y.model, *y.runner, y.classes}, ids, checked);
}

}  // namespace liuli
