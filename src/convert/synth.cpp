#include "liuli/synth.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "convert/random_blocks.h"
#include "convert/synth_keys.h"
#include "convert/tensor_list.h"
#include "core/thread_pool.h"
#include "liuli/error.h"
#include "model/config_in_gguf.h"

namespace liuli {
namespace {

constexpr int64_t kChunkBytes = int64_t{1}
                                << 20;  ///< one generator's share: fixed, so that threads do not matter
constexpr double kSmall = 0.1;          ///< deviation of biases from 0 and of a norm's factors from 1

void refuse_more(const char* what, int64_t asked, int64_t available, const char* title) {
  if (asked < 0 || asked > available)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} {} were asked for, {} has {}", asked, what, title, available));
}

/// A slice keeps the width. With experts it keeps at least one expert layer, its last.
KnownModel sliced(KnownModel m, const SynthSettings& settings) {
  if (m.family->architecture[0] == '\0' || !m.family->decoder)
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: only decoders with a GGUF layout are made up", m.title));
  refuse_more("layers", settings.n_layers, m.n_layers, m.title);
  refuse_more("experts", settings.n_experts, m.experts.n_experts, m.title);
  if (settings.n_layers > 0) m.n_layers = settings.n_layers;
  KnownExperts& e = m.experts;
  if (e.n_experts == 0) return m;
  e.n_dense_layers = std::min(e.n_dense_layers, m.n_layers - 1);
  if (settings.n_experts == 0) return m;
  e.n_experts = settings.n_experts;
  if (e.n_experts % e.n_groups != 0 || e.n_experts / e.n_groups * e.n_groups_kept < e.n_experts_active)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} experts cannot be cut into {} groups of which {} hold the {} chosen ones",
                            e.n_experts, e.n_groups, e.n_groups_kept, e.n_experts_active));
  return m;
}

double deviation_of(const ModelTensor& tensor) {
  return tensor.filling == Filling::weights ? 1 / std::sqrt(static_cast<double>(tensor.shape.back()))
                                            : kSmall;
}

void check_space(const std::string& output, int64_t bytes) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(output, error) && !fs::is_regular_file(output, error)) return;  // a device or a pipe
  const fs::path folder = fs::absolute(output, error).parent_path();
  const fs::space_info space = fs::space(folder, error);
  if (!error && space.available < static_cast<uint64_t>(bytes))
    throw Error(ErrorCode::io_error, fmt::format("{}: the file needs {} bytes, the disk has {} left", output,
                                                 bytes, space.available));
}

/// Produces tensors piece by piece and hands them to the writer.
class Synth {
 public:
  Synth(const SynthSettings& settings, GgufWriter& writer, int64_t total)
      : settings_(settings), writer_(writer), total_(total), pool_(settings.threads) {}

  void write(const ModelTensor& tensor, const GgufTensorSpec& spec, const KnownModel& model, uint64_t index);

 private:
  void write_small(const std::vector<float>& values);
  void write_blocks(const RandomBlocks& blocks, DType type, int64_t n_blocks, uint64_t index);
  void append(const void* data, int64_t bytes);

  const SynthSettings& settings_;
  GgufWriter& writer_;
  int64_t total_, done_ = 0;
  ThreadPool pool_;
  std::vector<uint8_t> buffer_;
};

void Synth::write(const ModelTensor& tensor, const GgufTensorSpec& spec, const KnownModel& model,
                  uint64_t index) {
  if (tensor.filling == Filling::divisors)
    return write_small(config_in_gguf(config_of(model, model.context)).ropes.front().divisors);
  const RandomBlocks blocks(spec.type, deviation_of(tensor));
  if (tensor.filling != Filling::gain)
    return write_blocks(blocks, spec.type, tensor.elements() / dtype_info(spec.type).block, index);
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  Rng rng(settings_.seed, index << 32);
  blocks.fill(rng, reinterpret_cast<uint8_t*>(values.data()), tensor.elements());  // norms are F32
  for (float& v : values) v += 1;
  write_small(values);
}

void Synth::write_small(const std::vector<float>& values) {
  append(values.data(), static_cast<int64_t>(values.size() * sizeof(float)));
}

/// A chunk's numbers depend on seed, tensor and the chunk's place; which thread makes it does not matter.
void Synth::write_blocks(const RandomBlocks& blocks, DType type, int64_t n_blocks, uint64_t index) {
  const int64_t block_bytes = dtype_info(type).bytes, chunk = kChunkBytes / block_bytes;
  const int64_t n_chunks = (n_blocks + chunk - 1) / chunk, at_once = 4 * pool_.size();
  buffer_.resize(static_cast<size_t>(at_once * chunk * block_bytes));
  for (int64_t first = 0; first < n_chunks; first += at_once) {
    const int64_t last = std::min(n_chunks, first + at_once);
    pool_.parallel_for(last - first, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; i++) {
        Rng rng(settings_.seed, index << 32 | static_cast<uint64_t>(first + i));
        const int64_t n = std::min(chunk, n_blocks - (first + i) * chunk);
        blocks.fill(rng, buffer_.data() + i * chunk * block_bytes, n);
      }
    });
    append(buffer_.data(), (std::min(last * chunk, n_blocks) - first * chunk) * block_bytes);
  }
}

void Synth::append(const void* data, int64_t bytes) {
  writer_.append(data, static_cast<size_t>(bytes));
  done_ += bytes;
  if (settings_.on_progress) settings_.on_progress(done_, total_);
}

void count(SynthReport& report, const GgufTensorSpec& spec) {
  const std::string name = dtype_info(spec.type).name;
  auto type =
      std::find_if(report.types.begin(), report.types.end(), [&](const auto& t) { return t.type == name; });
  if (type == report.types.end()) type = report.types.insert(type, {name, 0, 0});
  type->tensors++;
  type->bytes += spec.bytes();
}

std::string describe(const KnownModel& m, const SynthSettings& settings) {
  return fmt::format(
      "Random weights in the shape of {} ({} layers, seed {}), for measuring speed and memory. "
      "Nothing was trained; its text means nothing.",
      m.title, m.n_layers, settings.seed);
}

}  // namespace

SynthReport write_synthetic_model(const SynthSettings& settings) {
  const KnownModel model = sliced(known_model(settings.model), settings);
  const TypeMix mix = require_type_mix(settings.type);
  if (settings.context < 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("context is {}, it must be 0 or more", settings.context));
  const std::vector<ModelTensor> tensors = tensor_list(model);
  std::vector<GgufTensorSpec> specs;
  SynthReport report{model.title, model.n_layers, model.experts.n_experts, 0, 0, {}};
  int64_t data_bytes = 0;
  for (const ModelTensor& t : tensors) {
    specs.push_back({t.name, mix.type_of(t.name, t.shape, mix_model_of(model)), t.shape});
    count(report, specs.back());
    data_bytes += specs.back().bytes();
    if (t.filling != Filling::divisors) report.parameters += t.elements();
  }
  // Learned positions are as many as the context; with other positions any context may be claimed.
  const int64_t context =
      settings.context == 0 || model.family->learned_positions ? model.context : settings.context;
  const GgufKeys keys = synth_keys(model, mix, context, describe(model, settings));
  report.file_bytes = GgufWriter::file_bytes(settings.output, keys, specs);
  check_space(settings.output, report.file_bytes);
  GgufWriter writer(settings.output, keys, specs);
  Synth synth(settings, writer, data_bytes);
  for (size_t i = 0; i < tensors.size(); i++) synth.write(tensors[i], specs[i], model, i);
  writer.finish();
  return report;
}

}  // namespace liuli
