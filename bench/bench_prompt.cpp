// Prompt products: GFLOPS of one thread per level, shape and number of rows, packing and expansion of Q8-like
// weights left out or in by the panel's form; and the bare rate of the instruction that does the work.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/isa_tables.h"
#include "kernels/panel_samples.h"

namespace liuli::kernels {
namespace {

constexpr int kPrompt = 512;

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Panels that already are bf16 tiles: expanding them is a copy.
void copy_tiles(const uint8_t* panel, int64_t, int64_t begin, int64_t end, uint16_t* tiles) noexcept {
  std::memcpy(tiles, panel + begin * kPanelRows * 2, (end - begin) * kPanelRows * 2);
}

void prompt_product(benchmark::State& state, Isa isa, int d_out, int64_t k, int n_rows) {
  const PromptKernels& kernels = kernels_for(isa)->prompt;
  WeightKernels weight{};
  weight.expand_bf16 = &copy_tiles;
  const int panels = d_out / kPanelRows;
  const size_t panel_bytes = round_up(k, kPanelK) * kPanelRows * 2;
  AlignedBytes w(panel_bytes * panels), packed(kernels.packed_bytes(n_rows, k)),
      scratch(kernels.scratch_bytes(n_rows, k));
  std::vector<float> x(n_rows * k, 0.5f), y(static_cast<size_t>(n_rows) * d_out);
  for (auto _ : state) {
    for (int strip = 0; strip < (n_rows + 15) / 16; strip++)
      kernels.pack_strip(x.data(), k, n_rows, k, strip, packed.data());
    kernels.multiply(weight, w.data(), panel_bytes, 0, panels, k, packed.data(), n_rows, y.data(), d_out,
                     scratch.data());
    benchmark::ClobberMemory();
  }
  state.counters["GFLOPS"] =
      benchmark::Counter(2e-9 * d_out * k * n_rows, benchmark::Counter::kIsIterationInvariantRate);
}

// The same with a stored type's panels, expanded on the way: 4096 × 4096, the panel of 16 random rows again and again.
void typed_product(benchmark::State& state, Isa isa, DType type, int n_rows, bool int8) {
  constexpr int d_out = 4096, k = 4096;
  const Kernels& kernels = *kernels_for(isa);
  const bool fixed16 = kernels.weights[static_cast<int>(type)].expand_fixed16 != nullptr;
  const PromptKernels& prompt = int8      ? kernels.prompt_int8
                                : fixed16 ? kernels.prompt_fixed16
                                          : kernels.prompt;
  const size_t panel_bytes = panel_layout(type).bytes(k);
  AlignedBytes w(panel_bytes * d_out / kPanelRows), packed(prompt.packed_bytes(n_rows, k)),
      scratch(prompt.scratch_bytes(n_rows, k));
  const auto rows = random_rows(type, kPanelRows, k, 1);
  pack_panel(type, rows.data(), kPanelRows, k, w.data());
  for (int p = 1; p < d_out / kPanelRows; p++) std::memcpy(w.data() + p * panel_bytes, w.data(), panel_bytes);
  std::vector<float> x(static_cast<size_t>(n_rows) * k, 0.5f), y(static_cast<size_t>(n_rows) * d_out);
  for (auto _ : state) {
    for (int strip = 0; strip < (n_rows + 15) / 16; strip++)
      prompt.pack_strip(x.data(), k, n_rows, k, strip, packed.data());
    prompt.multiply(kernels.weights[static_cast<int>(type)], w.data(), panel_bytes, 0, d_out / kPanelRows, k,
                    packed.data(), n_rows, y.data(), d_out, scratch.data());
    benchmark::ClobberMemory();
  }
  state.counters["GFLOPS"] =
      benchmark::Counter(2e-9 * d_out * k * n_rows, benchmark::Counter::kIsIterationInvariantRate);
}

struct Shape {
  int d_out, k;
};
constexpr Shape kShapes[] = {{4096, 4096}, {576, 1536}, {1536, 576}, {896, 4864}, {4864, 896}, {640, 2048}};

int register_all() {
  for (Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
    const Kernels* kernels = kernels_for(isa);
    if (!kernels) continue;
    for (const Shape& s : kShapes) {
      for (int n_rows : {1, 8, 32, 64, kPrompt}) {
        const std::string name = std::string("prompt/") + kernels->name + '/' + std::to_string(s.d_out) +
                                 'x' + std::to_string(s.k) + "/rows:" + std::to_string(n_rows);
        benchmark::RegisterBenchmark(name.c_str(), prompt_product, isa, s.d_out, s.k, n_rows);
      }
    }
  }
  for (Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
    const Kernels* kernels = kernels_for(isa);
    if (!kernels) continue;
    for (const DType type : all_types())
      for (int n_rows : {48, kPrompt})
        for (const bool int8 : {false, true}) {
          if (int8 && kernels->weights[static_cast<int>(type)].expand_codes == nullptr) continue;
          const std::string name = std::string(int8 ? "int8/" : "typed/") + kernels->name + '/' +
                                   dtype_info(type).name + "/rows:" + std::to_string(n_rows);
          benchmark::RegisterBenchmark(name.c_str(), typed_product, isa, type, n_rows, int8);
        }
  }
  return 0;
}
const int kRegistered = register_all();

}  // namespace
}  // namespace liuli::kernels

BENCHMARK_MAIN();
