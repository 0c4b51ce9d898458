// Attention, one thread, one kv head: GFLOPS of the visible part for prompts, GB/s of cache bytes for
// decoding. The cache is many heads long, so that decoding reads memory and not this machine's own caches.
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

constexpr size_t kDecodeCacheBytes = size_t{256} << 20;

struct Problem {
  int head_dim, group, depth, n_rows, window;
  int values = 0;  ///< dims of a value; 0: as many as a key has
  bool shared = false;

  PageShape page() const { return {head_dim, values > 0 ? values : head_dim, shared}; }
};

struct Cache {
  Cache(const AttentionKernels& kernels, const Problem& p, size_t least_bytes) {
    const size_t page = kernels.page_bytes(p.page());
    per_head = (p.depth + kPagePositions - 1) / kPagePositions;
    heads = std::max<size_t>(1, least_bytes / (page * per_head));
    storage.resize(heads * per_head * page + 64);
    uint8_t* base = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64) % 64;
    std::vector<float> k(p.head_dim), v(p.head_dim);
    for (size_t i = 0; i < heads * per_head; i++) {
      uint8_t* at = base + i * page;
      pages.push_back(at);
      for (int slot = 0; slot < kPagePositions; slot++) {
        for (int d = 0; d < p.head_dim; d++) k[d] = v[d] = std::sin(float(d * 7 + slot * 13 + int(i)));
        kernels.append(at, slot, k.data(), v.data(), p.page());
      }
    }
  }
  size_t per_head, heads;
  std::vector<uint8_t> storage;
  std::vector<const uint8_t*> pages;
};

double visible_keys(const Problem& p) {
  double sum = 0;
  for (int i = 0; i < p.n_rows; i++) {
    const int seen = p.depth - p.n_rows + i + 1;
    sum += p.window > 0 ? std::min(seen, p.window) : seen;
  }
  return sum;
}

AttentionArgs make_args(const Problem& p, const std::vector<float>& q, std::vector<float>& z) {
  AttentionArgs args{};
  args.q = q.data();
  args.z = z.data();
  args.q_row = p.group * p.head_dim;
  args.q_head = p.head_dim;
  args.z_row = p.group * p.page().value_dim;
  args.z_head = p.page().value_dim;
  args.first_position = p.depth - p.n_rows;
  args.n_rows = p.n_rows;
  args.group = p.group;
  args.head_dim = p.head_dim;
  args.value_dim = p.page().value_dim;
  args.shared_values = p.shared;
  args.n_keys = p.depth;
  args.causal = true;
  args.window = p.window;
  args.scale = 1 / std::sqrt(float(p.head_dim));
  return args;
}

void attention(benchmark::State& state, const AttentionKernels& kernels, Problem p) {
  const Cache cache(kernels, p, p.n_rows == 1 ? kDecodeCacheBytes : 0);
  std::vector<float> q(p.n_rows * p.group * p.head_dim, 0.3f), z(q.size());
  std::vector<float> scratch(kernels.scratch_bytes(p.page(), p.group) / 4 + 16);
  void* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64 / 4;
  AttentionArgs args = make_args(p, q, z);
  const bool generated = p.n_rows == 1 && kernels.attend_generated != nullptr;
  const auto attend = generated ? kernels.attend_generated : kernels.attend;
  size_t head = 0;
  for (auto _ : state) {
    args.pages = cache.pages.data() + head * cache.per_head;
    attend(args, aligned);
    head = (head + 1) % cache.heads;
    benchmark::ClobberMemory();
  }
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  const double width = p.head_dim + p.page().value_dim;
  state.counters["GFLOPS"] = benchmark::Counter(2e-9 * width * p.group * visible_keys(p), rate);
  state.counters["GB/s"] = benchmark::Counter(1e-9 * cache.per_head * kernels.page_bytes(p.page()), rate);
}

// The limit of decoding: the same number of bytes, only read.
void stream_read(benchmark::State& state) {
  std::vector<uint64_t> memory(kDecodeCacheBytes / sizeof(uint64_t), 1);
  for (auto _ : state) {
    uint64_t sum[8] = {};
    for (size_t i = 0; i < memory.size(); i += 8) {
      for (int j = 0; j < 8; j++) sum[j] += memory[i + j];
    }
    benchmark::DoNotOptimize(sum);
  }
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["GB/s"] = benchmark::Counter(1e-9 * kDecodeCacheBytes, rate);
}
BENCHMARK(stream_read);

const Problem kProblems[] = {
    {64, 4, 512, 512, 0},
    {64, 4, 2048, 512, 0},
    {64, 4, 8192, 512, 0},
    {64, 4, 8192, 512, 1024},
    {128, 4, 512, 512, 0},
    {128, 4, 2048, 512, 0},
    {128, 4, 8192, 512, 0},
    {256, 4, 2048, 512, 0},
    {64, 3, 4096, 1, 0},
    {64, 1, 4096, 1, 0},
    {128, 4, 4096, 1, 0},
    {128, 1, 4096, 1, 0},
    {64, 7, 4096, 1, 0},
    {128, 6, 4096, 1, 0},
    {128, 8, 4096, 1, 0},
    {256, 4, 4096, 1, 0},
    // DeepSeek-V3's absorbed form: values apart, and as the key's first dims
    {576, 128, 4096, 1, 0, 512, false},
    {576, 128, 4096, 1, 0, 512, true},
    {576, 8, 4096, 1, 0, 512, false},
    {576, 8, 4096, 1, 0, 512, true},
};

struct CacheForm {
  const char* name;
  AttentionKernels Kernels::*kernels;
};
constexpr CacheForm kForms[] = {{"bf16", &Kernels::attention},
                                {"f16", &Kernels::attention_f16},
                                {"q8_0", &Kernels::attention_q8_0},
                                {"q4_0", &Kernels::attention_q4_0}};

void register_problem(const Kernels& kernels, const CacheForm& form, const Problem& p) {
  const std::string name =
      std::string("attention/") + kernels.name + "/" + form.name + "/head_dim:" + std::to_string(p.head_dim) +
      "/group:" + std::to_string(p.group) + "/rows:" + std::to_string(p.n_rows) +
      "/depth:" + std::to_string(p.depth) + (p.window ? "/window:1024" : "") +
      (p.values ? "/value_dim:" + std::to_string(p.values) : "") + (p.shared ? "/shared" : "");
  const AttentionKernels& attention_kernels = kernels.*form.kernels;
  benchmark::RegisterBenchmark(name.c_str(), [&attention_kernels, p](benchmark::State& state) {
    attention(state, attention_kernels, p);
  });
}

int register_all() {
  for (Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
    const Kernels* kernels = kernels_for(isa);
    if (!kernels) continue;
    for (const CacheForm& form : kForms)
      for (const Problem& p : kProblems) register_problem(*kernels, form, p);
  }
  return 0;
}
const int kRegistered = register_all();

}  // namespace
}  // namespace liuli::kernels

BENCHMARK_MAIN();
