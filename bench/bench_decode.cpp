// Decode class: one row against a whole matrix, cold weights, one thread, for every type and ISA level.
//
//   bench_decode [--benchmark_filter=avx512/Q4_K]
//
// Prints bytes of weights per second. "stream" is the limit: a byte of every line of the same
// memory. The matrices of a run lie side by side in 640 MB, far more than any cache, and are used in
// turn; 16x1536 and 16x896 are one panel that stays in the caches: what arithmetic alone allows, of
// whole chunks and with a last one of 128 columns.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <string>

#include "kernels/panel_samples.h"

namespace liuli::kernels {
namespace {

constexpr size_t kPoolBytes = size_t{640} << 20;

// Anonymous memory on large pages where the system has them.
uint8_t* pool() {
  static uint8_t* const memory = [] {
    void* p = mmap(nullptr, kPoolBytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) std::abort();
    madvise(p, kPoolBytes, MADV_HUGEPAGE);
    std::memset(p, 1, kPoolBytes);
    return static_cast<uint8_t*>(p);
  }();
  return memory;
}

void stream(benchmark::State& state) {
  const uint8_t* const memory = pool();
  constexpr size_t piece = size_t{16} << 20;
  size_t at = 0;
  for (auto _ : state) {
    for (size_t i = 0; i < piece; i += 64) (void)*static_cast<const volatile uint8_t*>(memory + at + i);
    at = (at + piece) % kPoolBytes;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(piece));
}

struct Shape {
  int64_t n, k;
};

// Fills the pool with copies of one random matrix and returns how many there are.
size_t fill_pool(DType type, Shape shape) {
  const size_t panel_bytes = panel_layout(type).bytes(shape.k);
  const size_t panels = kPoolBytes / panel_bytes, distinct = 64;
  const auto rows = random_rows(type, 16, shape.k, 1);
  for (size_t i = 0; i < panels; i++) {
    if (i < distinct)
      pack_panel(type, rows.data(), 16, shape.k, pool() + i * panel_bytes);
    else
      std::memcpy(pool() + i * panel_bytes, pool() + i % distinct * panel_bytes, panel_bytes);
  }
  return panels / static_cast<size_t>(shape.n / 16);
}

void decode(benchmark::State& state, const Kernels& kernels, DType type, Shape shape, int n_rows) {
  const WeightKernels& w = kernels.weights[static_cast<int>(type)];
  const size_t panel_bytes = panel_layout(type).bytes(shape.k), matrices = fill_pool(type, shape);
  const size_t copies = shape.n == kPanelRows ? 1 : matrices;
  const ptrdiff_t ldx = (shape.k + 63) / 64 * 64;
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(ldx * n_rows)), y(static_cast<size_t>(shape.n * n_rows));
  for (float& value : x) value = normal(random);
  std::vector<ActivationChunk> act(static_cast<size_t>(activation_chunks(shape.k) * n_rows));
  if (w.integer_decode) kernels.quantize_x16(x.data(), ldx, n_rows, shape.k, act.data());
  size_t matrix = 0;
  for (auto _ : state) {
    const uint8_t* panel = pool() + matrix * static_cast<size_t>(shape.n / 16) * panel_bytes;
    for (int64_t row = 0; row < shape.n; row += 16, panel += panel_bytes) {
      if (w.integer_decode)
        w.decode_x16(panel, shape.k, act.data(), n_rows, y.data() + row, shape.n);
      else
        w.decode_f32(panel, shape.k, x.data(), ldx, n_rows, y.data() + row, shape.n);
    }
    benchmark::ClobberMemory();
    matrix = (matrix + 1) % copies;
  }
  state.SetBytesProcessed(state.iterations() * (shape.n / 16) * static_cast<int64_t>(panel_bytes));
}

void add_benchmarks() {
  benchmark::RegisterBenchmark("stream", stream);
  for (const Isa isa : {Isa::avx512, Isa::avx2}) {
    const Kernels* kernels = kernels_for(isa);
    if (!kernels) continue;
    for (const DType type : all_types()) {
      if (!kernels->weights[static_cast<int>(type)].fast) continue;
      for (const Shape shape : {Shape{4096, 4096}, Shape{576, 1536}, Shape{16, 1536}, Shape{16, 896}})
        for (const int n_rows : {1, 4, 8}) {
          const std::string name = std::string(kernels->name) + "/" + dtype_info(type).name + "/" +
                                   std::to_string(shape.n) + "x" + std::to_string(shape.k) + "/" +
                                   std::to_string(n_rows);
          benchmark::RegisterBenchmark(
              name.c_str(), [=](benchmark::State& state) { decode(state, *kernels, type, shape, n_rows); });
        }
    }
  }
}

}  // namespace
}  // namespace liuli::kernels

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  liuli::kernels::add_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
}
