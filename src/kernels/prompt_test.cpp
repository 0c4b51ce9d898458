// The prompt product of every level this machine has, and the matrix unit's code over emulated tiles, against
// double sums over the same bf16 weights; and that a row's bits depend on nothing but the row.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/isa_tables.h"
#include "kernels/panel_samples.h"
#include "kernels/scalar/fixed16.h"
#include "kernels/scalar/int8_blocks.h"

namespace liuli::kernels {
#ifdef __x86_64__
const PromptKernels* prompt_amx_emulated() noexcept;  // amx/prompt.cpp over tiles in plain arrays
const PromptKernels* prompt_int8_evex() noexcept;     // avxvnni/ in AVX-512's encoding
const PromptKernels* prompt_fixed16_evex() noexcept;
#endif

namespace {

constexpr int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

float bf16(float x) {  // round to nearest even
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

// Panels for this test are plain f32 rows, [16][k padded to 64]; expanding them needs no kernel under test.
void expand_rows(const uint8_t* panel, int64_t k, int64_t begin, int64_t end, uint16_t* tiles) noexcept {
  const auto* rows = reinterpret_cast<const float*>(panel);
  const int64_t stride = round_up(k, kPanelK);
  for (int64_t i = begin; i < end; i++) {
    for (int lane = 0; lane < kPanelRows; lane++) {
      const float w = i < k ? bf16(rows[lane * stride + i]) : 0.0f;
      tiles[(i - begin) / 2 * 32 + lane * 2 + i % 2] =
          static_cast<uint16_t>(std::bit_cast<uint32_t>(w) >> 16);
    }
  }
}

void expand_rows_fixed16(const uint8_t* panel, int64_t k, int64_t begin, int64_t end,
                         int16_t* lines) noexcept {
  const auto* rows = reinterpret_cast<const float*>(panel);
  const int64_t stride = round_up(k, kPanelK);
  for (int64_t i = begin; i < end; i += kFixedBlock, lines += kFixedLines * kFixedLine)
    for (int lane = 0; lane < kPanelRows; lane++)
      fixed16_store(rows + lane * stride + i, kFixedBlock, lane, lines);
}

// Weights of 8 bits, rounded as activations are.
void expand_rows_codes(const uint8_t* panel, int64_t k, int64_t begin, int64_t end, int8_t* blocks) noexcept {
  const auto* rows = reinterpret_cast<const float*>(panel);
  const int64_t stride = round_up(k, kPanelK);
  for (int64_t i = begin; i < end; i += kInt8Block, blocks += kInt8Bytes)
    for (int lane = 0; lane < kPanelRows; lane++) {
      Int8Weights w{};
      w.scale[0] = int8_block(rows + lane * stride + i, kInt8Block, w.code);
      int8_store(w, false, false, lane, blocks);
    }
}

struct Matrix {
  Matrix(int n_panels, int64_t columns, unsigned seed)
      : panels(n_panels), k(columns), stride(round_up(k, kPanelK)), rows(n_panels * kPanelRows * stride) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (int r = 0; r < n_panels * kPanelRows; r++) {
      for (int64_t i = 0; i < k; i++) rows[r * stride + i] = normal(random);
    }
    weight.expand_bf16 = &expand_rows;
    weight.expand_fixed16 = &expand_rows_fixed16;
    weight.expand_codes = &expand_rows_codes;
  }
  int panels;
  int64_t k, stride;
  std::vector<float> rows;
  WeightKernels weight{};
};

std::vector<float> gaussian(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

constexpr float kUntouched = 12345.0f;

// y [n_rows][16 · panels], of which panels [begin, end) are computed; x rows lie ldx apart.
std::vector<float> multiply(const PromptKernels& kernels, const Matrix& w, const float* x, ptrdiff_t ldx,
                            int n_rows, int begin, int end) {
  AlignedBytes packed(kernels.packed_bytes(n_rows, w.k)), scratch(kernels.scratch_bytes(n_rows, w.k));
  for (int strip = 0; strip < (n_rows + 15) / 16; strip++) {
    kernels.pack_strip(x, ldx, n_rows, w.k, strip, packed.data());
  }
  const ptrdiff_t ldy = w.panels * kPanelRows;
  std::vector<float> y(n_rows * ldy, kUntouched);
  kernels.multiply(w.weight, reinterpret_cast<const uint8_t*>(w.rows.data()),
                   w.stride * kPanelRows * sizeof(float), begin, end, w.k, packed.data(), n_rows, y.data(),
                   ldy, scratch.data());
  return y;
}

double error_against_double(const Matrix& w, const std::vector<float>& x, int n_rows,
                            const std::vector<float>& y) {
  double error = 0, size = 0;
  const int n = w.panels * kPanelRows;
  for (int m = 0; m < n_rows; m++) {
    for (int r = 0; r < n; r++) {
      double sum = 0;
      for (int64_t i = 0; i < w.k; i++) sum += double(x[m * w.k + i]) * w.rows[r * w.stride + i];
      error += (y[m * n + r] - sum) * (y[m * n + r] - sum);
      size += sum * sum;
    }
  }
  return error / size;
}

struct Level {
  std::string name;
  const PromptKernels* kernels;
  double nmse = 1e-5;
};

// The level of AVX-VNNI where the machine has its instructions in the other encoding only; null where in none.
const Kernels* evex_level() {
#ifdef __x86_64__
  if (!kernels_for(Isa::avx512)) return nullptr;
  static const Kernels level = [] {
    Kernels k = *kernels_for(Isa::avx2);
    k.name = "avxvnni, EVEX";
    k.prompt_int8 = *prompt_int8_evex();
    k.prompt_fixed16 = *prompt_fixed16_evex();
    return k;
  }();
  return &level;
#else
  return nullptr;
#endif
}

std::vector<const Kernels*> levels_among(std::initializer_list<Isa> isas) {
  std::vector<const Kernels*> found;
  for (Isa isa : isas)
    if (const Kernels* k = kernels_for(isa)) found.push_back(k);
  if (evex_level()) found.push_back(evex_level());
  return found;
}
// Those with integer products of their own.
std::vector<const Kernels*> integer_levels() {
  return levels_among({Isa::scalar, Isa::avx2, Isa::avxvnni, Isa::avx512});
}

std::vector<Level> levels() {
  std::vector<Level> found;
  for (Isa isa : kAllIsas) {
    if (const Kernels* k = kernels_for(isa)) found.push_back({k->name, &k->prompt});
  }
  for (const Kernels* k : integer_levels())
    found.push_back({std::string("fixed point ") + k->name, &k->prompt_fixed16});
  for (const Kernels* k : integer_levels())
    found.push_back({std::string("8 bits ") + k->name, &k->prompt_int8, 8e-5});  // both operands rounded here
#ifdef __x86_64__
  if (kernels_for(Isa::avx512_bf16)) found.push_back({"amx, emulated tiles", prompt_amx_emulated()});
#endif
  return found;
}

const int64_t kLengths[] = {1, 18, 31, 32, 33, 54, 65, 96, 256, 288, 513, 576, 1000};

TEST(PromptProduct, StaysWithinItsRoundingOfTheDoubleProduct) {
  for (const Level& level : levels()) {
    for (int64_t k : kLengths) {
      const int n_rows = 21;
      const Matrix w(5, k, 1);
      const std::vector<float> x = gaussian(n_rows * k, 2);
      const double nmse =
          error_against_double(w, x, n_rows, multiply(*level.kernels, w, x.data(), k, n_rows, 0, 5));
      EXPECT_LE(nmse, level.nmse) << level.name << " k " << k;
    }
  }
}

TEST(PromptProduct, GivesARowTheSameBitsForEveryNumberOfRows) {
  for (const Level& level : levels()) {
    for (int64_t k : {54, 576, 1000}) {
      const Matrix w(4, k, 3);
      const int most = 130, n = w.panels * kPanelRows;
      const std::vector<float> x = gaussian(most * k, 4);
      const std::vector<float> all = multiply(*level.kernels, w, x.data(), k, most, 0, w.panels);
      for (int n_rows = 1; n_rows <= 70; n_rows++) {
        const int first = (n_rows * 7) % (most - n_rows);
        const auto some = multiply(*level.kernels, w, x.data() + first * k, k, n_rows, 0, w.panels);
        ASSERT_EQ(std::memcmp(some.data(), all.data() + first * n, some.size() * 4), 0)
            << level.name << " k " << k << " rows " << n_rows;
      }
    }
  }
}

TEST(PromptProduct, GivesARowTheSameBitsForEveryRangeOfPanels) {
  for (const Level& level : levels()) {
    const Matrix w(13, 576, 5);
    const int n_rows = 37, n = w.panels * kPanelRows;
    const std::vector<float> x = gaussian(n_rows * w.k, 6);
    const std::vector<float> all = multiply(*level.kernels, w, x.data(), w.k, n_rows, 0, w.panels);
    for (int begin = 0; begin < w.panels; begin++) {
      for (int end = begin; end <= w.panels; end++) {
        const std::vector<float> part = multiply(*level.kernels, w, x.data(), w.k, n_rows, begin, end);
        for (int m = 0; m < n_rows; m++) {
          for (int c = 0; c < n; c++) {
            const bool inside = c >= begin * kPanelRows && c < end * kPanelRows;
            ASSERT_EQ(part[m * n + c], inside ? all[m * n + c] : kUntouched)
                << level.name << ' ' << begin << ' ' << end;
          }
        }
      }
    }
  }
}

TEST(PromptProduct, GivesTheSameBitsWhenAWideMatrixIsCutAmongThreads) {
  for (const Level& level : levels()) {
    const Matrix w(79, 544, 11);  // more columns than a block of sums holds, more k than a chunk
    const int n_rows = 130, n = w.panels * kPanelRows;
    const std::vector<float> x = gaussian(n_rows * w.k, 12);
    const std::vector<float> all = multiply(*level.kernels, w, x.data(), w.k, n_rows, 0, w.panels);
    for (int begin = 0; begin < w.panels; begin += 20) {
      const int end = std::min(w.panels, begin + 20);
      const std::vector<float> part = multiply(*level.kernels, w, x.data(), w.k, n_rows, begin, end);
      for (int m = 0; m < n_rows; m++) {
        const size_t at = m * n + begin * kPanelRows;
        ASSERT_EQ(std::memcmp(&part[at], &all[at], (end - begin) * kPanelRows * sizeof(float)), 0)
            << level.name << ' ' << m;
      }
    }
  }
}

TEST(PromptProduct, ReadsRowsThatLieFurtherApart) {
  for (const Level& level : levels()) {
    const Matrix w(2, 70, 7);
    const std::vector<float> x = gaussian(19 * 70, 8);
    std::vector<float> spread(19 * 83, NAN);
    for (int m = 0; m < 19; m++) std::copy_n(&x[m * 70], 70, &spread[m * 83]);
    EXPECT_EQ(multiply(*level.kernels, w, spread.data(), 83, 19, 0, 2),
              multiply(*level.kernels, w, x.data(), 70, 19, 0, 2))
        << level.name;
  }
}

TEST(PromptProduct, HasTheSameBitsOnEveryLevelOfF32Fma) {
  const Kernels* scalar = kernels_for(Isa::scalar);
  for (Isa isa : {Isa::avx2, Isa::avx512, Isa::neon}) {
    const Kernels* level = kernels_for(isa);
    if (!level) continue;
    for (int64_t k : kLengths) {
      const Matrix w(7, k, 9);
      const std::vector<float> x = gaussian(41 * k, 10);
      const auto a = multiply(scalar->prompt, w, x.data(), k, 41, 0, 7),
                 b = multiply(level->prompt, w, x.data(), k, 41, 0, 7);
      EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * 4), 0) << level->name << " k " << k;
    }
  }
}

// ---- 16-bit fixed point ---------------------------------------------------------------------------------

std::vector<const Kernels*> fast_levels() {
  return levels_among({Isa::avx2, Isa::avxvnni, Isa::avx512, Isa::avx512_bf16, Isa::amx});
}

// Ordinary values; blocks of zeros; outliers; blocks of one number; numbers from the smallest to the largest.
void make_awkward(std::vector<float>& x, int64_t width, float tiny, float huge) {
  for (size_t i = 0; i < x.size(); i++) {
    const int64_t column = static_cast<int64_t>(i) % width, block = column / kFixedBlock,
                  row = static_cast<int64_t>(i) / width;
    if ((row + block) % 7 == 1) x[i] = 0.0f;
    if ((row + block) % 7 == 2) x[i] *= column % 13 == 5 ? 300.0f : 1.0f;
    if ((row + block) % 7 == 3) x[i] = 0.7f;
    if ((row + block) % 7 == 4) x[i] *= tiny;
    if ((row + block) % 7 == 5) x[i] = column % 64 == 9 ? huge : 0.0f;
    if ((row + block) % 7 == 6) x[i] = column % 2 == 0 ? huge : -huge;
  }
}

TEST(FixedPointPrompt, HasTheSameBitsOnEveryLevelAlsoForAwkwardNumbers) {
  const PromptKernels& scalar = kernels_for(Isa::scalar)->prompt_fixed16;
  for (const Kernels* level : fast_levels()) {
    for (int64_t k : kLengths) {
      Matrix w(7, k, 9);
      make_awkward(w.rows, w.stride, 6e-8f, 65504.0f);
      for (int r = 0; r < 7 * kPanelRows; r++) std::fill_n(&w.rows[r * w.stride + k], w.stride - k, 0.0f);
      std::vector<float> x = gaussian(41 * k, 10);
      make_awkward(x, k, 1e-35f, 1e30f);
      const auto a = multiply(scalar, w, x.data(), k, 41, 0, 7),
                 b = multiply(level->prompt_fixed16, w, x.data(), k, 41, 0, 7);
      EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * 4), 0) << level->name << " k " << k;
    }
  }
}

TEST(FixedPointPrompt, IsCloserToTheDoubleProductThanF16Activations) {
  for (int64_t k : {64, 576, 4096}) {
    for (const float outlier : {1.0f, 30.0f}) {
      const int n_rows = 21;
      const Matrix w(2, k, 1);
      std::vector<float> x = gaussian(n_rows * k, 2);
      for (size_t i = 0; i < x.size(); i++)
        if (i % static_cast<size_t>(k) % 97 == 11) x[i] *= outlier;
      const auto y = multiply(kernels_for(Isa::scalar)->prompt_fixed16, w, x.data(), k, n_rows, 0, 2);
      EXPECT_LE(error_against_double(w, x, n_rows, y), outlier == 1.0f ? 7e-9 : 2e-8)
          << k << " outliers " << outlier;
    }
  }
}

// √2³¹ is never passed: the longest vectors there are, and the largest single values.
TEST(FixedPointPrompt, DoesNotOverflowWhereEveryProductHasTheLargestValue) {
  for (const float outlier : {1.0f, 1e6f}) {
    Matrix w(1, 256, 1);
    std::vector<float> x(5 * 256, 0.731f);
    std::fill(w.rows.begin(), w.rows.end(), 0.731f);
    for (size_t i = 0; i < x.size(); i += 64) x[i] *= outlier;
    for (size_t i = 0; i < w.rows.size(); i += 64) w.rows[i] *= outlier;
    for (const Level& level : levels()) {
      if (level.name.find("fixed") == std::string::npos) continue;
      EXPECT_LE(error_against_double(w, x, 5, multiply(*level.kernels, w, x.data(), 256, 5, 0, 1)), 1e-8)
          << level.name;
    }
  }
}

TEST(FixedPointPrompt, AnInfiniteOrNaNActivationMakesItsRowNaNAndNoOther) {
  for (const Level& level : levels()) {
    if (level.name.find("fixed") == std::string::npos) continue;
    const Matrix w(1, 100, 1);
    std::vector<float> x = gaussian(3 * 100, 2);
    x[7] = INFINITY;
    x[290] = NAN;
    const auto y = multiply(*level.kernels, w, x.data(), 100, 3, 0, 1);
    for (int r = 0; r < kPanelRows; r++) {
      EXPECT_TRUE(std::isnan(y[r])) << level.name;
      EXPECT_TRUE(std::isfinite(y[kPanelRows + r])) << level.name;
      EXPECT_TRUE(std::isnan(y[2 * kPanelRows + r])) << level.name;
    }
  }
}

// ---- 8-bit blocks ---------------------------------------------------------------------------------------

// Random rows of a stored type in panels, and what they decode to.
struct StoredMatrix {
  StoredMatrix(DType type, int n_panels, int64_t columns)
      : panels(n_panels),
        k(columns),
        panel_bytes(panel_layout(type).bytes(k)),
        bytes(n_panels * panel_bytes),
        rows(n_panels * kPanelRows * k) {
    const auto row = static_cast<size_t>(row_bytes(type, k));
    const auto file = random_rows(type, n_panels * kPanelRows, k, 17);
    for (int p = 0; p < panels; p++)
      pack_panel(type, &file[p * kPanelRows * row], kPanelRows, k, bytes.data() + p * panel_bytes);
    for (int r = 0; r < panels * kPanelRows; r++) decode_row(type, &file[r * row], k, &rows[r * k]);
  }
  int panels;
  int64_t k;
  size_t panel_bytes;
  AlignedBytes bytes;
  std::vector<float> rows;
};

std::vector<float> multiply_in_int8(const Kernels& level, DType type, StoredMatrix& w,
                                    const std::vector<float>& x, int n_rows) {
  const PromptKernels& kernels = level.prompt_int8;
  AlignedBytes packed(kernels.packed_bytes(n_rows, w.k)), scratch(kernels.scratch_bytes(n_rows, w.k));
  for (int strip = 0; strip < (n_rows + 15) / 16; strip++)
    kernels.pack_strip(x.data(), w.k, n_rows, w.k, strip, packed.data());
  const ptrdiff_t ldy = w.panels * kPanelRows;
  std::vector<float> y(n_rows * ldy, kUntouched);
  kernels.multiply(level.weights[static_cast<size_t>(type)], w.bytes.data(), w.panel_bytes, 0, w.panels, w.k,
                   packed.data(), n_rows, y.data(), ldy, scratch.data());
  return y;
}

std::vector<DType> types_with_codes() {
  std::vector<DType> types;
  for (const DType type : all_types())
    if (kernels_for(Isa::scalar)->weights[static_cast<size_t>(type)].expand_codes) types.push_back(type);
  return types;
}

std::vector<int64_t> lengths_of(DType type) {
  std::vector<int64_t> lengths;
  for (const int64_t k : {32, 64, 96, 256, 288, 544, 768, 1024})
    if (k % dtype_info(type).block == 0) lengths.push_back(k);
  return lengths;
}

TEST(Int8Prompt, HasTheSameBitsOnEveryLevelForEveryType) {
  EXPECT_EQ(types_with_codes().size(), 23u);
  for (const DType type : types_with_codes())
    for (const int64_t k : lengths_of(type)) {
      StoredMatrix w(type, 7, k);
      std::vector<float> x = gaussian(43 * k, 10);
      make_awkward(x, k, 1e-35f, 1e30f);
      const auto want = multiply_in_int8(*kernels_for(Isa::scalar), type, w, x, 43);
      for (const Kernels* level : fast_levels()) {
        const auto got = multiply_in_int8(*level, type, w, x, 43);
        EXPECT_EQ(std::memcmp(want.data(), got.data(), got.size() * 4), 0)
            << level->name << ' ' << dtype_info(type).name << " k " << k;
      }
    }
}

// What narrow codes may be summed in follows from these bounds.
TEST(Int8Prompt, CodesStayWithinTheBoundsThatTheirTypeNamesAndReachThem) {
  const int64_t k = 8192;
  for (const DType type : types_with_codes()) {
    const WeightKernels& weight = kernels_for(Isa::scalar)->weights[static_cast<size_t>(type)];
    StoredMatrix w(type, 1, k);
    std::vector<int8_t> blocks(static_cast<size_t>(k / kInt8Block * kInt8Bytes));
    weight.expand_codes(w.bytes.data(), k, 0, k, blocks.data());
    int least = 127, most = -128;
    for (size_t block = 0; block < blocks.size(); block += kInt8Bytes)
      for (size_t i = block; i < block + kInt8Quads * kInt8Line; i++)
        least = std::min<int>(least, blocks[i]), most = std::max<int>(most, blocks[i]);
    EXPECT_EQ(least, weight.code_least) << dtype_info(type).name;
    EXPECT_EQ(most, weight.code_most) << dtype_info(type).name;
    for (const Kernels* level : fast_levels()) {
      EXPECT_EQ(level->weights[static_cast<size_t>(type)].code_least, weight.code_least) << level->name;
      EXPECT_EQ(level->weights[static_cast<size_t>(type)].code_most, weight.code_most) << level->name;
    }
  }
}

// The weights as stored, the activations rounded to 8 bits: a scale per 256 columns would leave 4.9e-5.
TEST(Int8Prompt, StaysWithin4e5OfTheDoubleProductForEveryType) {
  for (const DType type : types_with_codes())
    for (const int64_t k : {256, 1024}) {
      StoredMatrix w(type, 2, k);
      const int n_rows = 40, n = w.panels * kPanelRows;
      const std::vector<float> x = gaussian(n_rows * k, 2);
      const auto y = multiply_in_int8(best_kernels(), type, w, x, n_rows);
      double error = 0, size = 0;
      for (int m = 0; m < n_rows; m++)
        for (int r = 0; r < n; r++) {
          double sum = 0;
          for (int64_t i = 0; i < k; i++) sum += double(x[m * k + i]) * w.rows[r * k + i];
          error += (y[m * n + r] - sum) * (y[m * n + r] - sum);
          size += sum * sum;
        }
      EXPECT_LE(error / size, 4e-5) << dtype_info(type).name << " k " << k;
      EXPECT_GE(error / size, 1e-6) << dtype_info(type).name << " k " << k << ": not 8 bits";
    }
}

// Codes of −128 times −127 and of 255 steps: the largest sums there are.
TEST(Int8Prompt, DoesNotSaturateWhereEveryCodeIsTheLargest) {
  const DType type = DType::q8_0;
  const int64_t k = 64;
  for (const uint8_t code : {0x80, 0x7f}) {
    std::vector<uint8_t> file(static_cast<size_t>(16 * row_bytes(type, k)), code);
    for (size_t block = 0; block < file.size(); block += 34)
      file[block] = 0x00, file[block + 1] = 0x3c;  // 1.0
    AlignedBytes panel(panel_layout(type).bytes(k));
    pack_panel(type, file.data(), 16, k, panel.data());
    StoredMatrix w(type, 1, k);
    std::memcpy(w.bytes.data(), panel.data(), w.panel_bytes);
    for (const Kernels* level : integer_levels())
      for (const float x : {1.0f, -1.0f}) {
        const auto y = multiply_in_int8(*level, type, w, std::vector<float>(k, x), 1);
        const double want = static_cast<int8_t>(code) * double(x) * k;
        EXPECT_NEAR(y[3], want, 1e-6 * std::fabs(want)) << level->name;
      }
  }
}

TEST(Int8Prompt, AnInfiniteOrNaNActivationMakesItsRowNaNAndNoOther) {
  for (const Kernels* level : integer_levels()) {
    StoredMatrix w(DType::q4_k, 1, 256);
    std::vector<float> x = gaussian(3 * 256, 2);
    x[7] = INFINITY;
    x[2 * 256 + 90] = NAN;
    const auto y = multiply_in_int8(*level, DType::q4_k, w, x, 3);
    for (int r = 0; r < kPanelRows; r++) {
      EXPECT_TRUE(std::isnan(y[r])) << level->name;
      EXPECT_TRUE(std::isfinite(y[kPanelRows + r])) << level->name;
      EXPECT_TRUE(std::isnan(y[2 * kPanelRows + r])) << level->name;
    }
  }
}

}  // namespace
}  // namespace liuli::kernels
