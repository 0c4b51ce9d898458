// One layer of experts at the widths of DeepSeek-V3 and Qwen3-30B-A3B: router, gather, products, activation and sum.
//
//   chrt -r 1 bench_experts --benchmark_filter=prompt/deepseek
//
// Few experts are held (the rest would only cost memory); each token chooses 8 of them. "prompt" has 48 (or 16) tokens
// per expert and counts the products' operations; "decode" has one token and counts the bytes of its experts' weights.
#include <benchmark/benchmark.h>

#include <random>
#include <string>

#include "kernels/panel_samples.h"
#include "model/block.h"
#include "model/transformer.h"

namespace liuli {
namespace {

struct Width {
  const char* name;
  int64_t d_model, d_ff, held;
};
constexpr Width kWidths[] = {{"deepseek-v3", 7168, 2048, 24}, {"qwen3-30b-a3b", 2048, 768, 128}};
constexpr int64_t kActive = 8;

Matrix random_matrix(DType type, int64_t d_out, int64_t d_in, ThreadPool& pool) {
  const auto sixteen = kernels::random_rows(type, 16, d_in, 1);
  const size_t bytes = static_cast<size_t>(d_out * row_bytes(type, d_in));
  std::shared_ptr<uint8_t> rows(new uint8_t[bytes], std::default_delete<uint8_t[]>());
  for (size_t at = 0; at < bytes; at += sixteen.size())
    std::memcpy(rows.get() + at, sixteen.data(), std::min(sixteen.size(), bytes - at));
  Matrix m("w", type, d_out, d_in, FileRows{rows});
  m.build_panels(pool);
  return m;
}

struct Layer {
  MixtureOfExperts moe;
  Layer(const Width& w, DType type, ThreadPool& pool) {
    moe.shape.n_experts = w.held;
    moe.shape.n_experts_active = kActive;
    moe.shape.d_ff = w.d_ff;
    moe.router.weight = random_matrix(DType::f32, w.held, w.d_model, pool);
    moe.experts.resize(static_cast<size_t>(w.held));
    for (FeedForward& expert : moe.experts) {
      expert.gate.weight = random_matrix(type, w.d_ff, w.d_model, pool);
      expert.up.weight = random_matrix(type, w.d_ff, w.d_model, pool);
      expert.down.weight = random_matrix(type, w.d_model, w.d_ff, pool);
    }
  }
};

// Different rows at every iteration, so that decoding meets other experts.
void run(Layer& layer, Runner& runner, ProductClass product_class, int64_t n, std::span<const float> x) {
  runner.scratch.release({});
  OpContext ops = make_context(runner, product_class);
  Step s(ops);
  Rows h = make_rows(ops.scratch, n, static_cast<int64_t>(x.size()) / n);
  for (int64_t i = 0; i < n; i++)
    std::memcpy(h.row(i), x.data() + i * h.width, static_cast<size_t>(h.width) * 4);
  benchmark::DoNotOptimize(feed_forward(layer.moe, 0, h, s).data);
}

void experts(benchmark::State& state, const Width& w, DType type, int64_t n, int threads) {
  Runner runner(threads);
  Layer layer(w, type, runner.pool);
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  const int64_t distinct = 16;
  std::vector<float> x(static_cast<size_t>(distinct * n * w.d_model));
  for (float& value : x) value = normal(random);
  const auto product_class = n > 1 ? ProductClass::prompt : ProductClass::decode;
  int64_t at = 0;
  for (auto _ : state) {
    run(layer, runner, product_class, n,
        std::span(x).subspan(static_cast<size_t>(at * n * w.d_model), static_cast<size_t>(n * w.d_model)));
    at = (at + 1) % distinct;
  }
  const double weights = 3.0 * static_cast<double>(w.d_model * w.d_ff);
  state.counters["GFLOPS"] = benchmark::Counter(2e-9 * weights * static_cast<double>(n * kActive),
                                                benchmark::Counter::kIsIterationInvariantRate);
  if (n == 1)
    state.SetBytesProcessed(state.iterations() * kActive *
                            static_cast<int64_t>(layer.moe.experts[0].gate.weight.run_bytes() * 3));
}

void add_benchmarks() {
  for (const Width& w : kWidths)
    for (const DType type : {DType::q4_k, DType::f16, DType::f8_e4m3_b128})
      for (const int64_t per_expert : {0, 16, 48})
        for (const int threads : {1, 2}) {
          const int64_t n = per_expert == 0 ? 1 : per_expert * w.held / kActive;
          const std::string name = std::string(n > 1 ? "prompt/" : "decode/") + w.name + "/" +
                                   dtype_info(type).name + "/per_expert:" + std::to_string(per_expert) +
                                   "/threads:" + std::to_string(threads);
          benchmark::RegisterBenchmark(name.c_str(), [=, &w](benchmark::State& state) {
            experts(state, w, type, n, threads);
          })->UseRealTime();
        }
}

}  // namespace
}  // namespace liuli

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  liuli::add_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
}
