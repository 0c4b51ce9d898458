// Attention of every level this machine has, and the matrix unit's code over emulated tiles, against double
// sums over the cached values; and that a query's bits depend neither on the queries it comes with nor on who
// looks at the scores.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "kernels/isa_tables.h"

namespace liuli::kernels {
#ifdef __x86_64__
const AttentionKernels* attention_amx_emulated() noexcept;  // amx/attention.cpp over tiles in plain arrays
CodeAttention attention_codes_amx_emulated() noexcept;
#endif

namespace {

struct Level {
  std::string name;
  const AttentionKernels* kernels;
};

// Caches of codes come twice: as prompts and as generated tokens multiply them.
void add_codes(std::vector<Level>& found, const std::string& name, const AttentionKernels& kernels) {
  static std::deque<AttentionKernels> generated;
  found.push_back({name, &kernels});
  generated.push_back(kernels);
  generated.back().attend = kernels.attend_generated;
  found.push_back({name + ", generated", &generated.back()});
}

std::vector<Level> levels() {
  std::vector<Level> found;
  for (Isa isa : kAllIsas) {
    if (const Kernels* k = kernels_for(isa)) {
      found.push_back({k->name, &k->attention});
      add_codes(found, std::string("q8_0 ") + k->name, k->attention_q8_0);
      add_codes(found, std::string("q4_0 ") + k->name, k->attention_q4_0);
    }
  }
#ifdef __x86_64__
  if (kernels_for(Isa::avx512_bf16)) {
    found.push_back({"amx, emulated tiles", attention_amx_emulated()});
    found.push_back({"q8_0 amx, emulated tiles", attention_codes_amx_emulated().q8_0});
    found.push_back({"q4_0 amx, emulated tiles", attention_codes_amx_emulated().q4_0});
  }
#endif
  for (Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::neon}) {
    if (const Kernels* k = kernels_for(isa)) {
      found.push_back({std::string("f16 ") + k->name, &k->attention_f16});
      found.push_back({std::string("f32 ") + k->name, &k->attention_f32});
    }
  }
  found.push_back({"exact", &exact_attention()});
  return found;
}

struct Shape {
  int head_dim, value_dim, group = 4, window = 0;
  float soft_cap = 0;
  bool causal = true;
  bool shared = false;  // values are the keys' first dims
  PageShape page() const { return {head_dim, value_dim, shared}; }
};

void PrintTo(const Shape& s, std::ostream* out) {
  *out << "head_dim " << s.head_dim << " value_dim " << s.value_dim << " group " << s.group << " window "
       << s.window << " soft_cap " << s.soft_cap << (s.causal ? " causal" : " bidirectional")
       << (s.shared ? " shared values" : "");
}

float* aligned(std::vector<float>& storage) {
  return reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(storage.data()) + 63) / 64 * 64);
}

std::vector<float> gaussian(size_t n, unsigned seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

// The cache of one kv head: n_keys positions.
struct Cache {
  Cache(const AttentionKernels& attention, const Shape& s, int keys)
      : kernels(attention), shape(s), n_keys(keys), page_floats(attention.page_bytes(s.page()) / 4) {
    const int n_pages = (n_keys + kPagePositions - 1) / kPagePositions;
    storage.resize(n_pages * page_floats + 16);
    for (int p = 0; p < n_pages; p++)
      pages.push_back(reinterpret_cast<uint8_t*>(aligned(storage) + p * page_floats));
    k = gaussian(size_t(n_keys) * s.head_dim, 1);
    v = gaussian(size_t(n_keys) * s.value_dim, 2);
    for (int t = 0; t < n_keys; t++) {
      kernels.append(pages[t / kPagePositions], t % kPagePositions, &k[t * s.head_dim], &v[t * s.value_dim],
                     s.page());
    }
    read_back();
  }
  // Every position's key and value as stored; read once, as every query looks at them all.
  void read_back() {
    k.resize(size_t(n_keys) * shape.head_dim);
    v.resize(size_t(n_keys) * shape.value_dim);
    for (int t = 0; t < n_keys; t++)
      kernels.read(pages[t / kPagePositions], t % kPagePositions, &k[t * shape.head_dim],
                   &v[t * shape.value_dim], shape.page());
  }

  const AttentionKernels& kernels;
  Shape shape;
  int n_keys;
  size_t page_floats;
  std::vector<float> storage;
  std::vector<uint8_t*> pages;
  std::vector<float> k, v;
};

// What a run leaves behind. Rows are [n_rows][group][dim].
struct Result {
  std::vector<float> z, scores, max, sum;
};

struct Queries {
  Queries(const Shape& s, int first, int rows, unsigned seed = 3)
      : first_position(first), n_rows(rows), q(gaussian(size_t(rows) * s.group * s.head_dim, seed, 1.5f)) {}
  int first_position, n_rows;
  std::vector<float> q;
};

AttentionArgs make_args(const Cache& cache, const Queries& queries) {
  const Shape& s = cache.shape;
  AttentionArgs args{};
  args.q = queries.q.data();
  args.q_row = s.group * s.head_dim;
  args.q_head = s.head_dim;
  args.z_row = s.group * s.value_dim;
  args.z_head = s.value_dim;
  args.pages = cache.pages.data();
  args.first_position = queries.first_position;
  args.n_rows = queries.n_rows;
  args.group = s.group;
  args.head_dim = s.head_dim;
  args.value_dim = s.value_dim;
  args.shared_values = s.shared;
  args.n_keys = cache.n_keys;
  args.causal = s.causal;
  args.window = s.window;
  args.scale = 1 / std::sqrt(float(s.head_dim));
  args.soft_cap = s.soft_cap;
  return args;
}

void attend(const Cache& cache, const AttentionArgs& args) {
  const Shape& s = cache.shape;
  std::vector<float> scratch(cache.kernels.scratch_bytes(s.page(), args.group) / 4 + 16, NAN);
  cache.kernels.attend(args, aligned(scratch));
}

// All rows in chunks of `cut`; with `watched`, scores, maxima and sums too (one chunk only).
Result run(const Cache& cache, const Queries& queries, int cut, bool watched = false) {
  const Shape& s = cache.shape;
  Result result;
  result.z.assign(size_t(queries.n_rows) * s.group * s.value_dim, NAN);
  AttentionArgs all = make_args(cache, queries);
  if (watched) {
    result.scores.assign(size_t(s.group) * queries.n_rows * cache.n_keys, NAN);
    result.max.assign(s.group * queries.n_rows, NAN);
    result.sum = result.max;
    all.scores = result.scores.data();
    all.row_max = result.max.data();
    all.row_sum = result.sum.data();
  }
  for (int i = 0; i < queries.n_rows; i += cut) {
    AttentionArgs args = all;
    args.q += i * args.q_row;
    args.z = result.z.data() + i * args.z_row;
    args.first_position += i;
    args.n_rows = std::min(cut, queries.n_rows - i);
    attend(cache, args);
  }
  return result;
}

bool visible(const Shape& s, int t, int u, int n_keys) {
  if (u >= n_keys || (s.causal && u > t)) return false;
  return s.window == 0 || (u <= t && t - u < s.window);
}

// Row i, head g in double over the values as cached; also its scores.
std::vector<double> reference(const Cache& cache, const Queries& queries, int i, int g,
                              std::vector<double>& scores) {
  const Shape& s = cache.shape;
  const float* q = &queries.q[(size_t(i) * s.group + g) * s.head_dim];
  std::vector<double> z(s.value_dim);
  scores.assign(cache.n_keys, -INFINITY);
  double max = -INFINITY, l = 0;
  for (int u = 0; u < cache.n_keys; u++) {
    if (!visible(s, queries.first_position + i, u, cache.n_keys)) continue;
    const float* k = &cache.k[size_t(u) * s.head_dim];
    double dot = 0;
    for (int d = 0; d < s.head_dim; d++) dot += double(q[d]) * k[d];
    dot /= std::sqrt(double(s.head_dim));
    scores[u] = s.soft_cap != 0 ? s.soft_cap * std::tanh(dot / s.soft_cap) : dot;
    max = std::max(max, scores[u]);
  }
  for (int u = 0; u < cache.n_keys; u++) {
    if (scores[u] == -INFINITY) continue;
    const float* v = &cache.v[size_t(u) * s.value_dim];
    const double p = std::exp(scores[u] - max);
    l += p;
    for (int d = 0; d < s.value_dim; d++) z[d] += p * v[d];
  }
  for (double& d : z) d /= l;
  return z;
}

double error_against_double(const Cache& cache, const Queries& queries, const std::vector<float>& z) {
  const Shape& s = cache.shape;
  std::vector<double> scores;
  double error = 0, size = 0;
  for (int i = 0; i < queries.n_rows; i += 5) {
    for (int g = 0; g < s.group; g++) {
      const std::vector<double> want = reference(cache, queries, i, g, scores);
      for (int d = 0; d < s.value_dim; d++) {
        const double difference = z[(size_t(i) * s.group + g) * s.value_dim + d] - want[d];
        error += difference * difference;
        size += want[d] * want[d];
      }
    }
  }
  return error / size;
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (int d : {1, 18, 22, 32, 64, 80, 128, 256}) all.push_back({d, d});
  all.push_back({64, 64, 4, 100});
  all.push_back({128, 128, 1, 300});
  all.push_back({32, 32, 7, 5});
  all.push_back({64, 64, 2, 0, 20.0f});
  all.push_back({64, 64, 3, 0, 0, false});
  all.push_back({80, 80, 1, 0, 0, false});
  all.push_back({192, 128, 1});
  all.push_back({24, 72, 5, 64});
  all.push_back({24, 16, 3, 0, 0, true, true});
  all.push_back({70, 45, 5, 100, 0, true, true});
  all.push_back({128, 128, 1, 0, 20.0f, false, true});
  return all;
}

TEST(Attention, StaysWithinBf16RoundingOfDoubleSumsOverTheCache) {
  for (const Level& level : levels()) {
    for (const Shape& shape : shapes()) {
      const Cache cache(*level.kernels, shape, 300);
      const Queries queries(shape, 150, 150);
      // Prompts over codes round keys and values to bf16 as well; few dims leave little to average over.
      const bool codes = level.name.starts_with("q");
      const double bound = !codes ? 1e-5 : level.name.starts_with("q8") && shape.head_dim >= 32 ? 2e-5 : 6e-5;
      EXPECT_LE(error_against_double(cache, queries, run(cache, queries, 150).z), bound)
          << level.name << ' ' << testing::PrintToString(shape);
    }
  }
}

TEST(Attention, InF32AndDoubleIsAsCloseAsTheirArithmetic) {
  const Shape shape{80, 48, 3};
  const Queries queries(shape, 200, 300);
  for (Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::neon}) {
    if (kernels_for(isa) == nullptr) continue;  // an instruction set this machine lacks
    const Cache f32(kernels_for(isa)->attention_f32, shape, 500);
    EXPECT_LE(error_against_double(f32, queries, run(f32, queries, 300).z), 1e-12);
  }
  const Cache exact(exact_attention(), shape, 500);
  EXPECT_LE(error_against_double(exact, queries, run(exact, queries, 300).z), 1e-14);
}

TEST(Attention, OverF16PagesAddsNothingToTheErrorOfTheCache) {
  for (Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::avx512_bf16}) {
    if (kernels_for(isa) == nullptr) continue;  // an instruction set this machine lacks
    for (const Shape& shape : shapes()) {
      const Cache f16(kernels_for(isa)->attention_f16, shape, 300), f32(exact_attention(), shape, 300);
      const Queries queries(shape, 150, 150);
      const std::vector<float> z = run(f16, queries, 150).z;
      EXPECT_LE(error_against_double(f16, queries, z), 1e-10) << testing::PrintToString(shape);
      EXPECT_LE(error_against_double(f32, queries, z), 1e-6) << testing::PrintToString(shape);
    }
  }
}

TEST(Attention, KeepsInF16PagesWhatF16CanHold) {
  const float given[] = {1.0f, -1.0009765625f, 1e-7f, 65504.0f, -7e4f, 1e30f},
              kept[] = {1.0f, -1.0009765625f, 1.1920928955078125e-7f, 65504.0f, -65504.0f, 65504.0f};
  const AttentionKernels& kernels = kernels_for(Isa::scalar)->attention_f16;
  std::vector<float> storage(kernels.page_bytes({6, 6}) / 4 + 16), k(6), v(6);
  auto* page = reinterpret_cast<uint8_t*>(aligned(storage));
  kernels.append(page, 63, given, given, {6, 6});
  kernels.read(page, 63, k.data(), v.data(), {6, 6});
  EXPECT_EQ(k, std::vector<float>(kept, kept + 6));
  EXPECT_EQ(v, k);
}

TEST(Attention, GivesAQueryTheSameBitsInChunksOfAnySize) {
  for (const Level& level : levels()) {
    for (const Shape& shape : shapes()) {
      const Cache cache(*level.kernels, shape, 300);
      const Queries queries(shape, 215, 75);  // across the border of a block
      const std::vector<float> whole = run(cache, queries, 75).z;
      for (int cut : {1, 3, 37}) {
        const std::vector<float> cut_up = run(cache, queries, cut).z;
        EXPECT_EQ(std::memcmp(whole.data(), cut_up.data(), whole.size() * 4), 0)
            << level.name << ' ' << testing::PrintToString(shape) << " chunks of " << cut;
      }
    }
  }
}

TEST(Attention, GivesAQueryTheSameBitsForAnyPartOfItsGroup) {
  for (const Level& level : levels()) {
    const Shape shape{64, 64, 7};
    const Cache cache(*level.kernels, shape, 300);
    const Queries queries(shape, 0, 300);
    const Result whole = run(cache, queries, 300);
    Result parts = whole;
    std::fill(parts.z.begin(), parts.z.end(), NAN);
    for (int head = 0; head < shape.group; head += 3) {
      AttentionArgs args = make_args(cache, queries);
      args.q += head * args.q_head;
      args.z = parts.z.data() + head * args.z_head;
      args.group = std::min(3, shape.group - head);
      attend(cache, args);
    }
    EXPECT_EQ(std::memcmp(whole.z.data(), parts.z.data(), whole.z.size() * 4), 0) << level.name;
  }
}

TEST(Attention, ShowsItsScoresMaximaAndSumsWithoutChangingABit) {
  for (const Level& level : levels()) {
    for (const Shape& shape : {Shape{64, 64, 4}, Shape{48, 80, 2, 100}, Shape{64, 64, 2, 0, 20.0f},
                               Shape{64, 64, 1, 0, 0, false}}) {
      const Cache cache(*level.kernels, shape, 410);
      const Queries queries(shape, 290, 120);
      const Result plain = run(cache, queries, 120), watched = run(cache, queries, 120, true);
      ASSERT_EQ(std::memcmp(plain.z.data(), watched.z.data(), plain.z.size() * 4), 0) << level.name;
      std::vector<double> want;
      for (int i = 0; i < 120; i += 17) {
        for (int g = 0; g < shape.group; g++) {
          const std::vector<double> z = reference(cache, queries, i, g, want);
          const int at = g * 120 + i;
          const float* scores = &watched.scores[size_t(at) * cache.n_keys];
          double max = -INFINITY, total = 0;
          std::vector<float> pattern(cache.n_keys);
          level.kernels->pattern(scores, watched.max[at], watched.sum[at], cache.n_keys, pattern.data());
          std::vector<double> again(shape.value_dim);
          std::vector<float> k(shape.head_dim), v(shape.value_dim);
          for (int u = 0; u < cache.n_keys; u++) {
            if (want[u] == -INFINITY) continue;
            ASSERT_NEAR(scores[u], want[u], 0.03) << level.name << " row " << i << " key " << u;
            max = std::max(max, double(scores[u]));
            total += pattern[u];
            cache.kernels.read(cache.pages[u / 64], u % 64, k.data(), v.data(), shape.page());
            for (int d = 0; d < shape.value_dim; d++) again[d] += double(pattern[u]) * v[d];
          }
          EXPECT_EQ(watched.max[at], float(max)) << level.name;
          EXPECT_NEAR(total, 1, 1e-5) << level.name;
          for (int d = 0; d < shape.value_dim; d++) {
            EXPECT_NEAR(again[d], watched.z[(size_t(i) * shape.group + g) * shape.value_dim + d], 0.01)
                << level.name;
          }
        }
      }
    }
  }
}

TEST(Attention, KeepsWhatWasAppendedToBf16Precision) {
  for (const Level& level : levels()) {
    if (level.name.starts_with("q")) continue;  // the next tests
    for (const Shape& shape : {Shape{18, 22}, Shape{64, 64}, Shape{80, 33}}) {
      const Cache cache(*level.kernels, shape, 64);
      const auto k = gaussian(64 * shape.head_dim, 1), v = gaussian(64 * shape.value_dim, 2);
      std::vector<float> got_k(shape.head_dim), got_v(shape.value_dim);
      for (int t = 0; t < 64; t++) {
        cache.kernels.read(cache.pages[0], t, got_k.data(), got_v.data(), shape.page());
        for (int d = 0; d < shape.head_dim; d++) {
          const float want = k[t * shape.head_dim + d];
          EXPECT_NEAR(got_k[d], want, std::fabs(want) / 256);
        }
        for (int d = 0; d < shape.value_dim; d++) {
          const float want = v[t * shape.value_dim + d];
          EXPECT_NEAR(got_v[d], want, std::fabs(want) / 256);
        }
      }
    }
  }
}

// The largest magnitude of the 32 dims around d.
float largest(const float* x, int n, int d) {
  float top = 0;
  for (int i = d / 32 * 32; i < std::min(n, d / 32 * 32 + 32); i++) top = std::max(top, std::fabs(x[i]));
  return top;
}

TEST(Attention, KeepsCodesToHalfAStepOfTheirGroup) {
  for (const Level& level : levels()) {
    if (!level.name.starts_with("q")) continue;
    // Of 4 bits the value opposite to the largest one has no code of its own: it loses up to a whole step.
    const float step = level.name.starts_with("q8") ? 0.5f / 127 : 1.0f / 8;
    for (const Shape& shape : {Shape{18, 22}, Shape{64, 64}, Shape{80, 33}, Shape{33, 80}}) {
      const Cache cache(*level.kernels, shape, 64);
      const auto k = gaussian(64 * shape.head_dim, 1), v = gaussian(64 * shape.value_dim, 2);
      std::vector<float> got_k(shape.head_dim), got_v(shape.value_dim);
      const auto check = [&](const float* want, const std::vector<float>& got) {
        const int n = static_cast<int>(got.size());
        for (int d = 0; d < n; d++)
          EXPECT_NEAR(got[d], want[d], 1.001f * step * largest(want, n, d) + std::fabs(want[d]) / 256)
              << level.name << " dim " << d;
      };
      for (int t = 0; t < 64; t++) {
        cache.kernels.read(cache.pages[0], t, got_k.data(), got_v.data(), shape.page());
        check(&k[t * shape.head_dim], got_k);
        check(&v[t * shape.value_dim], got_v);
      }
    }
  }
}

TEST(Attention, WritesAPositionOfCodesWithoutTouchingItsNeighbours) {
  const Kernels& scalar = *kernels_for(Isa::scalar);
  for (const AttentionKernels* kernels : {&scalar.attention_q8_0, &scalar.attention_q4_0}) {
    const int head_dim = 80, value_dim = 48;
    const size_t bytes = kernels->page_bytes({head_dim, value_dim});
    std::vector<uint8_t> ascending(bytes), scattered(bytes);
    const auto k = gaussian(64 * head_dim, 1), v = gaussian(64 * value_dim, 2);
    const std::vector<float> zero(head_dim);
    const auto put = [&](std::vector<uint8_t>& page, int t) {
      kernels->append(page.data(), t, &k[t * head_dim], &v[t * value_dim], {head_dim, value_dim});
    };
    for (int t = 0; t < 64; t++) put(ascending, t);
    for (int t = 0; t < 64; t++) {
      put(scattered, t * 37 % 64);  // written, cleared as a roll-back does, and written again
      kernels->append(scattered.data(), t * 37 % 64, zero.data(), zero.data(), {head_dim, value_dim});
      put(scattered, t * 37 % 64);
    }
    EXPECT_EQ(ascending, scattered) << kernels->name;
  }
}

TEST(Attention, KeepsFiniteInCodesWhatIsFinite) {
  const Kernels& scalar = *kernels_for(Isa::scalar);
  for (const AttentionKernels* kernels : {&scalar.attention_q8_0, &scalar.attention_q4_0}) {
    std::vector<float> given = {1e30f, -3.0f, 0.0f, 1e-30f}, k(4), v(4);
    std::vector<uint8_t> page(kernels->page_bytes({4, 4}));
    kernels->append(page.data(), 5, given.data(), given.data(), {4, 4});
    kernels->read(page.data(), 5, k.data(), v.data(), {4, 4});
    for (int d = 0; d < 4; d++) EXPECT_TRUE(std::isfinite(k[d]) && std::isfinite(v[d])) << kernels->name;
    EXPECT_GT(k[0], 1e5f);
    given[2] = NAN;
    kernels->append(page.data(), 5, given.data(), given.data(), {4, 4});
    kernels->read(page.data(), 5, k.data(), v.data(), {4, 4});
    EXPECT_TRUE(std::isnan(k[0]) && std::isnan(v[2])) << "a NaN stays to be seen";
  }
}

// Normally distributed keys are the hard case: every group's largest value is only about 2.2 σ, but q · k has no outlier
// to lean on. 8 bits stay within 1.3e-4 of f32 keys and values, 4 bits within 3.5e-2.
TEST(Attention, OverCodesStaysCloseToF32KeysAndValues) {
  for (const Level& level : levels()) {
    if (!level.name.starts_with("q")) continue;
    for (const Shape& shape : shapes()) {
      if (shape.head_dim < 18) continue;  // one number of a head is its own scale
      const Cache codes(*level.kernels, shape, 300), f32(exact_attention(), shape, 300);
      const Queries queries(shape, 150, 150);
      EXPECT_LE(error_against_double(f32, queries, run(codes, queries, 150).z),
                level.name.starts_with("q8") ? 1.3e-4 : 3.5e-2)
          << level.name << ' ' << testing::PrintToString(shape);
    }
  }
}

// Pages that hold the key's beginning again as the value.
Cache kept_twice(const AttentionKernels& kernels, Shape shape, int n_keys) {
  shape.shared = false;
  Cache cache(kernels, shape, n_keys);
  const auto k = gaussian(size_t(n_keys) * shape.head_dim, 1);
  for (int t = 0; t < n_keys; t++)
    kernels.append(cache.pages[t / kPagePositions], t % kPagePositions, &k[t * shape.head_dim],
                   &k[t * shape.head_dim], shape.page());
  cache.read_back();
  return cache;
}

TEST(Attention, OverSharedValuesHasTheBitsOfValuesKeptTwice) {
  for (const Level& level : levels()) {
    for (const auto& [head_dim, value_dim] : {std::pair{576, 512}, {24, 16}, {70, 45}, {33, 32}, {96, 96}}) {
      for (const auto& [group, rows] : {std::pair{1, 1}, {3, 1}, {3, 70}, {128, 1}, {128, 2}}) {
        if (head_dim == 576 && rows > 2) continue;  // enough of it
        const Shape shape{head_dim, value_dim, group, 0, 0, true, true};
        const int n_keys = head_dim == 576 ? 270 : 330;
        const Cache shared(*level.kernels, shape, n_keys), twice = kept_twice(*level.kernels, shape, n_keys);
        const Queries queries(shape, n_keys - rows, rows);
        const std::vector<float> z = run(shared, queries, rows).z;
        ASSERT_EQ(shared.k, twice.k) << level.name;
        const bool codes = level.name.starts_with("q");
        EXPECT_LE(error_against_double(shared, queries, z), !codes                              ? 1e-5
                                                            : level.name.ends_with("generated") ? 1e-8
                                                                                                : 6e-5)
            << level.name << ' ' << testing::PrintToString(shape);
        // (A group of 32 dims across the value's end has one scale instead of two.)
        if (codes && value_dim % 32 != 0) continue;
        ASSERT_EQ(shared.v, twice.v) << level.name;
        EXPECT_EQ(z, run(twice, queries, rows).z) << level.name << ' ' << testing::PrintToString(shape);
      }
    }
  }
}

TEST(Attention, KeepsSharedValuesOnce) {
  const Kernels& scalar = *kernels_for(Isa::scalar);
  const PageShape shape{576, 512, true};
  EXPECT_EQ(scalar.attention.page_bytes(shape), 64u * 576 * 2);
  EXPECT_EQ(scalar.attention_f16.page_bytes(shape), 64u * 576 * 2);
  EXPECT_EQ(scalar.attention_f32.page_bytes(shape), 64u * 576 * 4);
  EXPECT_EQ(scalar.attention_q8_0.page_bytes(shape), 64u * 576 / 32 * 34);
  EXPECT_EQ(scalar.attention_q4_0.page_bytes(shape), 64u * 576 / 32 * 18);
  EXPECT_EQ(exact_attention().page_bytes(shape), 64u * 576 * 4);
}

TEST(Attention, SurvivesScoresFarApart) {
  for (const Level& level : levels()) {
    const Shape shape{64, 64, 2};
    const Cache cache(*level.kernels, shape, 600);
    Queries queries(shape, 560, 40);
    for (float& q : queries.q) q *= 200;  // maxima of some hundreds: one key takes all
    const double nmse = error_against_double(cache, queries, run(cache, queries, 40).z);
    EXPECT_LE(nmse, level.name == "f32" || level.name == "exact" ? 1e-5 : 0.05) << level.name;
  }
}

TEST(Attention, HasTheSameBitsOnEveryLevelOfF32Fma) {
  const Kernels* scalar = kernels_for(Isa::scalar);
  for (Isa isa : {Isa::avx2, Isa::avx512, Isa::neon}) {
    const Kernels* level = kernels_for(isa);
    if (!level) continue;
    for (const Shape& shape : shapes()) {
      const Cache a(scalar->attention, shape, 300), b(level->attention, shape, 300);
      const Queries queries(shape, 150, 150);
      const auto x = run(a, queries, 150).z, y = run(b, queries, 150).z;
      EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size() * 4), 0)
          << level->name << ' ' << testing::PrintToString(shape);
      const Cache c(scalar->attention_f16, shape, 300), d(level->attention_f16, shape, 300);
      EXPECT_EQ(run(c, queries, 150).z, run(d, queries, 150).z)
          << "f16, " << level->name << ' ' << testing::PrintToString(shape);
    }
  }
}

TEST(Attention, HasTheSameBitsOverCodesOnEveryLevel) {
  const std::vector<Level> all = levels();
  for (const char* form :
       {"q8_0 scalar", "q4_0 scalar", "q8_0 scalar, generated", "q4_0 scalar, generated"}) {
    const auto scalar = std::find_if(all.begin(), all.end(), [&](const Level& l) { return l.name == form; });
    ASSERT_NE(scalar, all.end());
    for (const Level& level : all) {
      const bool generated = level.name.ends_with("generated");
      if (!level.name.starts_with(scalar->name.substr(0, 4)) || !level.kernels->attend_generated) continue;
      if (generated != scalar->name.ends_with("generated")) continue;
      // (Prompts go through the level's bf16 products.)
      if (!generated && (level.kernels->bf16_query || level.name.find("amx") != std::string::npos)) continue;
      for (const Shape& shape : shapes()) {
        const Cache a(*scalar->kernels, shape, 300), b(*level.kernels, shape, 300);
        const Queries queries(shape, 150, 150);
        ASSERT_EQ(a.storage.size(), b.storage.size());
        EXPECT_EQ(run(a, queries, 150).z, run(b, queries, 150).z)
            << level.name << ' ' << testing::PrintToString(shape);
      }
    }
  }
}

TEST(Attention, OfGeneratedTokensAddsNothingToTheErrorOfCodes) {
  for (const Level& level : levels()) {
    if (!level.name.ends_with("generated")) continue;
    for (const Shape& shape : shapes()) {
      const Cache cache(*level.kernels, shape, 300);
      const Queries queries(shape, 150, 150);
      EXPECT_LE(error_against_double(cache, queries, run(cache, queries, 150).z), 1e-8)
          << level.name << ' ' << testing::PrintToString(shape);
    }
  }
}

}  // namespace
}  // namespace liuli::kernels
