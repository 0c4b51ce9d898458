// What it costs that every value can be seen: an idle probe by itself, and a token (or a prompt) with nobody listening, with
// all of resid_post kept, and with everything kept.
//
//     LIULI_BENCH_MODEL=smollm2.gguf bench_probe [--benchmark_filter=…]       threads: LIULI_BENCH_THREADS, default 2
//
// The counters of `idle`: how many probes a token passes, and what they cost of a token, in percent.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <memory>

#include "formats/weight_source.h"
#include "generate/sequence.h"
#include "model/load.h"
#include "trace/point_selection.h"
#include "trace/recorder.h"

namespace liuli {
namespace {

constexpr int kPromptTokens = 512, kDepth = 64;

struct LoadedModel {
  LoadedModel()
      : runner(std::getenv("LIULI_BENCH_THREADS") ? std::atoi(std::getenv("LIULI_BENCH_THREADS")) : 2),
        model(load_model(open_weights(std::getenv("LIULI_BENCH_MODEL")), runner.pool, {})) {
    for (int i = 0; i < kPromptTokens; i++)
      prompt.push_back(static_cast<int>((i * 7919 + 13) % model.config.vocab_size));
  }
  Runner runner;
  Model model;
  std::vector<int> prompt;
};
LoadedModel& loaded() {
  static LoadedModel model;
  return model;
}

// Counts how often somebody could have listened.
class Counter final : public Probe {
 public:
  bool wants(const Place&) const override {
    asked_++;
    return false;
  }
  void see(const ProbedValue&) override {}
  int64_t asked() const { return asked_; }

 private:
  mutable int64_t asked_ = 0;
};

// One probe nobody listens to: the test of a null pointer, with the arguments made ready for it.
void idle(benchmark::State& state) {
  LoadedModel& m = loaded();
  OpContext ops = make_context(m.runner, ProductClass::decode);
  Step step(ops);
  std::vector<float> values(64);
  Rows rows{values.data(), 1, 64, 64};
  int layer = 0;
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    benchmark::DoNotOptimize(step.listener);
    benchmark::DoNotOptimize(layer);
    step.probe(Point::resid_post, layer, rows);
    benchmark::ClobberMemory();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  Sequence sequence(m.model, {});
  sequence.feed(m.runner, std::span(m.prompt).first(kDepth));
  Counter counter;
  sequence.feed_generated(m.runner, std::span(m.prompt).first(1), &counter);
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kTokens = 32;
  for (int i = 0; i < kTokens; i++) sequence.feed_generated(m.runner, std::span(m.prompt).first(1));
  const std::chrono::duration<double> token = (std::chrono::steady_clock::now() - begin) / kTokens;
  const double probe = seconds.count() / static_cast<double>(state.iterations());
  state.counters["probes_per_token"] = static_cast<double>(counter.asked());
  state.counters["percent_of_a_token"] = 100 * probe * static_cast<double>(counter.asked()) / token.count();
}

// `every_logit`: nobody listens, but the logits of all positions are formed, as for everything.
enum class Watch { nothing, every_logit, resid_post, everything };

// Memory that the next capture uses again, as the Python package's does.
class KeptMemory final : public TraceSink {
 public:
  void begin(const std::vector<TracedTensor>& tensors) override {
    if (!buffers_.empty()) return;
    for (const TracedTensor& tensor : tensors) {
      size_t n = sizeof(float);
      for (const int64_t size : tensor.shape) n *= static_cast<size_t>(size);
      buffers_.emplace_back(n);
    }
  }
  void write(size_t, int64_t, const float*, int64_t) override {}
  float* memory(size_t tensor) override { return buffers_[tensor].as<float>(); }

 private:
  std::vector<AlignedBuffer> buffers_;
};

std::unique_ptr<Recorder> recorder_for(Watch watch, int n_tokens, TraceSink* memory) {
  if (watch < Watch::resid_post) return nullptr;
  LoadedModel& m = loaded();
  std::vector<Place> places = watch == Watch::everything
                                  ? all_places(m.model.config)
                                  : select_places(m.model.config, {"blocks.*.resid_post"});
  return std::make_unique<Recorder>(whole_captures(m.model.config, places, {n_tokens, 0}), int64_t{16} << 30,
                                    memory, &m.runner.pool);
}

// A prompt of 512 tokens.
void prompt(benchmark::State& state, Watch watch) {
  LoadedModel& m = loaded();
  KeptMemory memory;
  for (auto _ : state) {
    Sequence sequence(m.model, {});
    const auto recorder = recorder_for(watch, kPromptTokens, &memory);
    FeedOptions options;
    options.listener = recorder.get();
    options.every_logit = watch == Watch::everything || watch == Watch::every_logit;
    benchmark::DoNotOptimize(sequence.feed(m.runner, m.prompt, options));
  }
}

// One generated token behind 64 others.
void decode(benchmark::State& state, Watch watch) {
  LoadedModel& m = loaded();
  Sequence sequence(m.model, {});
  sequence.feed(m.runner, std::span(m.prompt).first(kDepth));
  // A capture of a run's last token keeps memory for the whole of it: asked for once, as a generation would.
  KeptMemory memory;
  const auto recorder = recorder_for(watch, kDepth + 1, &memory);
  for (auto _ : state) {
    benchmark::DoNotOptimize(sequence.feed_generated(m.runner, std::span(m.prompt).first(1), recorder.get()));
    sequence.truncate(kDepth);
  }
}

int register_all() {
  if (std::getenv("LIULI_BENCH_MODEL") == nullptr) {
    std::fputs("bench_probe: LIULI_BENCH_MODEL names no model\n", stderr);
    std::exit(2);
  }
  benchmark::RegisterBenchmark("idle", idle);
  const std::pair<const char*, Watch> watches[] = {{"nothing", Watch::nothing},
                                                   {"every_logit", Watch::every_logit},
                                                   {"resid_post", Watch::resid_post},
                                                   {"everything", Watch::everything}};
  for (const auto& [name, watch] : watches) {
    benchmark::RegisterBenchmark((std::string("decode/") + name).c_str(), decode, watch)
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark((std::string("prompt/") + name).c_str(), prompt, watch)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
  return 0;
}
const int kRegistered = register_all();

}  // namespace
}  // namespace liuli

BENCHMARK_MAIN();
