// Implements collect_imatrix() of include/liuli/convert.h: an engine's run with the collector listening.
#include <fmt/format.h>

#include "convert/importance_collector.h"
#include "engine/engine_parts.h"
#include "liuli/convert.h"

namespace liuli {
namespace {

void check(const Engine& engine, const std::vector<int>& ids, int chunk) {
  const int64_t longest = engine.config().max_seq_len;
  if (chunk < 1 || chunk > longest)
    throw Error(ErrorCode::invalid_argument, fmt::format("chunk is {}, expected 1…{}", chunk, longest));
  if (ids.empty()) throw Error(ErrorCode::invalid_argument, "the text has no tokens");
}

}  // namespace

ImatrixReport collect_imatrix(Engine& engine, const std::vector<int>& ids, const std::string& output,
                              const ImatrixSettings& settings) {
  check(engine, ids, settings.chunk);
  EngineParts& parts = engine.parts();
  parts.check_tokens(ids, 0, static_cast<int64_t>(ids.size()));
  ImportanceCollector collector(*open_weights(parts.path));
  const auto chunk = static_cast<size_t>(settings.chunk);
  size_t chunks = std::max<size_t>(1, ids.size() / chunk);
  if (settings.max_chunks > 0) chunks = std::min(chunks, static_cast<size_t>(settings.max_chunks));
  ImatrixReport report;
  const auto total = static_cast<int64_t>(std::min(ids.size(), chunks * chunk));
  for (size_t i = 0; i < chunks; i++) {
    const std::span<const int> window =
        std::span(ids).subspan(i * chunk, std::min(chunk, ids.size() - i * chunk));
    Sequence sequence(*parts.model, parts.classes);
    FeedOptions options;
    options.listener = &collector;
    options.every_logit = true;  // the final norm's rows of every token, not only of the last
    sequence.feed(*parts.runner, window, options);
    report.tokens += static_cast<int64_t>(window.size());
    if (settings.on_progress) settings.on_progress(report.tokens, total);
  }
  ImportanceMatrix matrix = collector.take();
  if (!settings.dataset.empty()) matrix.datasets.push_back(settings.dataset);
  matrix.chunk_count = report.chunks = static_cast<int64_t>(chunks);
  matrix.chunk_size = settings.chunk;
  write_imatrix(output, matrix);
  report.tensors = static_cast<int64_t>(matrix.entries.size());
  report.missing = collector.missing();
  return report;
}

}  // namespace liuli
