// Every type, every ISA of this machine: against the scalar kernels bit for bit, and those against double
// precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/fixed16.h"
#include "kernels/isa_tables.h"
#include "kernels/panel_samples.h"
#include "kernels/scalar/fixed16.h"
#include "kernels/weight_level.h"
#include "kernels/weights_bf16.h"

namespace liuli::kernels {

#ifdef __x86_64__
void set_decode_evex(WeightTable& table) noexcept;  // avxvnni/ in AVX-512's encoding
void set_lattice_evex(WeightTable& table) noexcept;
#endif

namespace {

struct Level {
  const char* name;
  const WeightTable* table;
  QuantizeRows quantize;
};

// The levels faster than scalar that this machine can run.
std::vector<Level> fast_levels() {
  std::vector<Level> levels;
  if (kernels_for(Isa::avx2)) levels.push_back({"avx2", weights_avx2(), quantize_x16_avx2()});
  if (kernels_for(Isa::avxvnni)) levels.push_back({"avxvnni", weights_avxvnni(), quantize_x16_avx2()});
#ifdef __x86_64__
  if (kernels_for(Isa::avx512)) {
    static const WeightLevel evex("256-bit VNNI", set_decode_evex, set_lattice_evex, set_float_avx2);
    levels.push_back({"avxvnni, EVEX", evex.table(), quantize_x16_avx2()});
  }
#endif
  if (kernels_for(Isa::avx512)) levels.push_back({"avx512", weights_avx512(), quantize_x16_avx512()});
  if (kernels_for(Isa::avx512_bf16))
    levels.push_back({"avx512_bf16", weights_avx512_bf16(), quantize_x16_avx512()});
  if (kernels_for(Isa::neon)) levels.push_back({"neon", weights_neon(), quantize_x16_scalar()});
  return levels;
}
const Level kScalar{"scalar", weights_scalar(), quantize_x16_scalar()};

std::vector<int64_t> columns_of(DType type) {
  const int block = dtype_info(type).block;
  if (block == 1) return {1, 18, 31, 54, 63, 64, 65, 256, 288, 576};
  if (block == 256) return {256, 512, 768, 1024};
  std::vector<int64_t> columns;
  for (const int64_t k : {32, 64, 96, 128, 256, 288, 384, 576, 608, 896, 1024})
    if (k % block == 0) columns.push_back(k);
  return columns;
}

// One panel and up to 16 rows of activations, in f32 and x16, padded with zeros to 64 columns.
struct Case {
  static constexpr int kMaxRows = 16;
  DType type;
  int64_t k, ldx;
  std::vector<uint8_t> rows;
  AlignedBytes panel;
  std::vector<float> x;
  std::vector<double> weights;  // [16][k]

  Case(DType t, int64_t columns, uint32_t seed = 1)
      : type(t),
        k(columns),
        ldx((columns + 63) / 64 * 64 + 16),
        rows(random_rows(t, 16, columns, seed)),
        panel(panel_layout(t).bytes(columns)),
        x(static_cast<size_t>(kMaxRows * ldx)) {
    pack_panel(type, rows.data(), 16, k, panel.data());
    std::mt19937 random(seed + 1);
    std::normal_distribution<float> normal;
    for (int m = 0; m < kMaxRows; m++)
      for (int64_t i = 0; i < k; i++)
        x[static_cast<size_t>(m * ldx + i)] = normal(random) * (i % 61 == 7 ? 20.0f : 1.0f);
    std::vector<float> decoded(static_cast<size_t>(k));
    for (int lane = 0; lane < 16; lane++) {
      decode_row(type, rows.data() + lane * row_bytes(type, k), k, decoded.data());
      weights.insert(weights.end(), decoded.begin(), decoded.end());
    }
  }
  std::vector<ActivationChunk> activations(int first, int n_rows, QuantizeRows quantize) const {
    std::vector<ActivationChunk> act(static_cast<size_t>(activation_chunks(k) * n_rows));
    quantize(x.data() + first * ldx, ldx, n_rows, k, act.data());
    return act;
  }
  const WeightKernels& kernels(const Level& level) const {
    return level.table->by_type[static_cast<int>(type)];
  }
  double exact(int m, int lane) const {
    double sum = 0;
    for (int64_t i = 0; i < k; i++)
      sum += weights[static_cast<size_t>(lane * k + i)] * x[static_cast<size_t>(m * ldx + i)];
    return sum;
  }
};

enum class Product { x16, decode_f32, product_f32 };

// Rows [first, first + n_rows) as [n_rows][16].
std::vector<float> multiply(Case& c, const Level& level, Product product, int first, int n_rows) {
  const ptrdiff_t ldy = 19;
  std::vector<float> y(static_cast<size_t>(n_rows * ldy), -7.0f), out;
  const WeightKernels& w = c.kernels(level);
  if (product == Product::x16) {
    w.decode_x16(c.panel.data(), c.k, c.activations(first, n_rows, level.quantize).data(), n_rows, y.data(),
                 ldy);
  } else {
    auto* kernel = product == Product::decode_f32 ? w.decode_f32 : w.product_f32;
    kernel(c.panel.data(), c.k, c.x.data() + first * c.ldx, c.ldx, n_rows, y.data(), ldy);
  }
  for (int m = 0; m < n_rows; m++) {
    out.insert(out.end(), y.begin() + m * ldy, y.begin() + m * ldy + 16);
    for (int i = 16; i < ldy; i++)
      EXPECT_EQ(y[static_cast<size_t>(m * ldy + i)], -7.0f) << "written beyond 16";
  }
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// f(case, product) over every type, length and product that exists.
template <class F>
void for_each_product(F&& f) {
  for (const DType type : all_types()) {
    for (const int64_t k : columns_of(type)) {
      Case c(type, k);
      SCOPED_TRACE(std::string(dtype_info(type).name) + " k " + std::to_string(k));
      for (const Product product : {Product::x16, Product::decode_f32, Product::product_f32})
        if (product != Product::x16 || c.kernels(kScalar).integer_decode) f(c, product);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

double nmse(Case& c, Product product) {
  const auto y = multiply(c, kScalar, product, 0, 4);
  double error = 0, norm = 0;
  for (int m = 0; m < 4; m++) {
    for (int lane = 0; lane < 16; lane++) {
      const double z = c.exact(m, lane), e = y[static_cast<size_t>(16 * m + lane)] - z;
      error += e * e;
      norm += z * z;
    }
  }
  return error / norm;
}

TEST(Weights, ScalarProductsAgreeWithDoublePrecision) {
  for_each_product(
      [](Case& c, Product product) { EXPECT_LT(nmse(c, product), product == Product::x16 ? 1e-7 : 1e-12); });
}

TEST(Weights, EveryIsaGivesTheBitsOfScalar) {
  for_each_product([](Case& c, Product product) {
    for (const int n_rows : {1, 2, 3, 4, 5, 8, 9, 16}) {
      const auto expected = multiply(c, kScalar, product, 0, n_rows);
      for (const Level& level : fast_levels())
        ASSERT_TRUE(same_bits(multiply(c, level, product, 0, n_rows), expected))
            << level.name << " product " << static_cast<int>(product) << " rows " << n_rows;
    }
  });
}

TEST(Weights, ARowAloneHasTheBitsItHasAmongOthers) {
  std::vector<Level> levels = fast_levels();
  levels.push_back(kScalar);
  for_each_product([&](Case& c, Product product) {
    for (const Level& level : levels) {
      const auto together = multiply(c, level, product, 0, 9);
      for (const int m : {0, 3, 8}) {
        const auto alone = multiply(c, level, product, m, 1);
        ASSERT_TRUE(std::memcmp(alone.data(), together.data() + 16 * m, 64) == 0)
            << level.name << " row " << m;
      }
    }
  });
}

// The tiles of columns [k_begin, k_end) as the contract describes them.
std::vector<uint16_t> expected_tiles(const Case& c, int64_t k_begin, int64_t k_end) {
  std::vector<uint16_t> tiles(static_cast<size_t>((k_end - k_begin) * 16));
  for (int64_t i = k_begin; i < k_end; i++) {
    for (int64_t lane = 0; lane < 16; lane++) {
      const int64_t at = (i - k_begin) / 2 * 32 + 2 * lane + i % 2;
      const float w = i < c.k ? static_cast<float>(c.weights[static_cast<size_t>(lane * c.k + i)]) : 0.0f;
      tiles[static_cast<size_t>(at)] = f32_to_bf16(w);
    }
  }
  return tiles;
}

TEST(Weights, ExpandToTheRoundedDecodedWeightOnEveryIsa) {
  std::vector<Level> levels = fast_levels();
  levels.push_back(kScalar);
  for (const DType type : all_types()) {
    for (const int64_t k : columns_of(type)) {
      const Case c(type, k);
      Case& panel = const_cast<Case&>(c);
      const int64_t end = (k + 63) / 64 * 64;
      for (const Level& level : levels) {
        for (const auto& [k_begin, k_end] :
             {std::pair<int64_t, int64_t>{0, end}, {end - 32, end}, {0, 32}, {end / 2 / 32 * 32, end}}) {
          AlignedBytes tiles(static_cast<size_t>((k_end - k_begin) * 32));
          auto* out = reinterpret_cast<uint16_t*>(tiles.data());
          c.kernels(level).expand_bf16(panel.panel.data(), k, k_begin, k_end, out);
          const auto expected = expected_tiles(c, k_begin, k_end);
          ASSERT_TRUE(std::equal(expected.begin(), expected.end(), out))
              << level.name << " " << dtype_info(type).name << " k " << k << " from " << k_begin << " to "
              << k_end;
        }
      }
    }
  }
}

TEST(Weights, ExpandKeepsNaNAndInfinity) {
  std::vector<Level> levels = fast_levels();
  levels.push_back(kScalar);
  std::vector<uint8_t> rows = random_rows(DType::f32, 16, 64, 3);
  const uint32_t special[4] = {0x7fffffffu, 0x7f800000u, 0xff800000u, 0x7f7fffffu};
  std::memcpy(rows.data(), special, sizeof special);
  AlignedBytes panel(panel_layout(DType::f32).bytes(64)), tiles(64 * 32);
  pack_panel(DType::f32, rows.data(), 16, 64, panel.data());
  for (const Level& level : levels) {
    auto* out = reinterpret_cast<uint16_t*>(tiles.data());
    level.table->by_type[static_cast<int>(DType::f32)].expand_bf16(panel.data(), 64, 0, 64, out);
    EXPECT_GT(out[0] & 0x7fff, 0x7f80) << level.name;
    EXPECT_EQ(out[1], 0x7f80) << level.name;
    EXPECT_EQ(out[32], 0xff80) << level.name;
    EXPECT_EQ(out[33], 0x7f80) << level.name;
  }
}

// The lines of columns [k_begin, k_end), block by block from the decoded weights.
std::vector<int16_t> expected_lines(const Case& c, int64_t k_begin, int64_t k_end) {
  std::vector<int16_t> lines(static_cast<size_t>((k_end - k_begin) / kFixedBlock * kFixedLines * kFixedLine));
  for (int64_t at = k_begin; at < k_end; at += kFixedBlock) {
    const int64_t n = std::clamp<int64_t>(c.k - at, 0, kFixedBlock);
    for (int64_t lane = 0; lane < 16; lane++) {
      float x[kFixedBlock];
      for (int64_t i = 0; i < n; i++)
        x[i] = static_cast<float>(c.weights[static_cast<size_t>(lane * c.k + at + i)]);
      fixed16_store(x, static_cast<int>(n), static_cast<int>(lane),
                    lines.data() + (at - k_begin) / kFixedBlock * kFixedLines * kFixedLine);
    }
  }
  return lines;
}

TEST(Weights, ExpandToTheSameFixedPointOnEveryIsa) {
  std::vector<Level> levels = fast_levels();
  levels.push_back(kScalar);
  for (const DType type : all_types()) {
    for (const int64_t k : columns_of(type)) {
      const Case c(type, k);
      Case& panel = const_cast<Case&>(c);
      const int64_t end = (k + 63) / 64 * 64;
      for (int64_t k_begin = 0; k_begin < end; k_begin += 64) {
        const auto expected = expected_lines(c, k_begin, end);
        for (const Level& level : levels) {
          if (c.kernels(level).expand_fixed16 == nullptr) continue;
          AlignedBytes got(expected.size() * sizeof(int16_t));
          c.kernels(level).expand_fixed16(panel.panel.data(), k, k_begin, end,
                                          reinterpret_cast<int16_t*>(got.data()));
          ASSERT_EQ(std::memcmp(expected.data(), got.data(), expected.size() * sizeof(int16_t)), 0)
              << level.name << " " << dtype_info(type).name << " k " << k << " from " << k_begin;
        }
      }
    }
  }
}

// F16 everywhere; codes where neither bf16 products nor a matrix unit are at hand.
TEST(Weights, PromptsMultiplyCodesInFixedPointWithoutBf16) {
  const auto fixed = [](const WeightTable& table, DType type) {
    return table.by_type[static_cast<int>(type)].expand_fixed16 != nullptr;
  };
  for (const Level& level : fast_levels()) {
    EXPECT_TRUE(fixed(*level.table, DType::f16)) << level.name;
    const std::string name = level.name;
    EXPECT_EQ(fixed(*level.table, DType::q4_k), name.starts_with("avx") && name != "avx512_bf16") << name;
  }
}

TEST(Weights, FixedPointKeepsSixteenBitsOfABlock) {
  Case c(DType::f16, 64);
  std::vector<int16_t> lines(kFixedLines * kFixedLine);
  c.kernels(kScalar).expand_fixed16(c.panel.data(), 64, 0, 64, lines.data());
  for (int lane = 0; lane < kPanelRows; lane++) {
    float scale;
    std::memcpy(&scale, &lines[static_cast<size_t>(kFixedScales + 2 * lane)], sizeof scale);
    double length = 0;
    for (int i = 0; i < 64; i++) {
      const double w = c.weights[static_cast<size_t>(lane * 64 + i)];
      EXPECT_NEAR(scale * lines[static_cast<size_t>(i / 2 * kFixedLine + 2 * lane + i % 2)], w,
                  scale * 0.501);
      length += w * w;
    }
    EXPECT_NEAR(scale, std::sqrt(length) / 46000, scale * 1e-5);
  }
}

TEST(Weights, EveryTypeHasEveryKernelOnEveryIsa) {
  std::vector<Level> levels = fast_levels();
  levels.push_back(kScalar);
  for (const Level& level : levels) {
    for (const DType type : all_types()) {
      const WeightKernels& w = level.table->by_type[static_cast<int>(type)];
      EXPECT_NE(w.name, nullptr);
      EXPECT_NE(w.decode_f32, nullptr);
      EXPECT_NE(w.product_f32, nullptr);
      EXPECT_NE(w.expand_bf16, nullptr);
      EXPECT_TRUE(type != DType::f16 || w.expand_fixed16 != nullptr);
      EXPECT_EQ(w.integer_decode, w.decode_x16 != nullptr);
    }
  }
}

}  // namespace
}  // namespace liuli::kernels
