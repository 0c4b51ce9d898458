// Every row kernel of every level this machine has, against the formula in double, at lengths around the
// vector widths, aligned and one float off, with guards on both sides of what a kernel may write.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kGuard = -12345.0f;
const int64_t kLengths[] = {0,  1,  7,  8,  9,   15,
                            16, 17, 29, 53, 1000};  // w − 1, w, w + 1, 3w + 5 for w = 8 and 16

struct Table {
  std::string name;
  const RowKernels* rows;
};

std::vector<Table> tables() {
  std::vector<Table> all = {{"scalar", rows_scalar()}, {"exact", &exact_rows()}};
  for (Isa isa : kAllIsas)
    if (const RowKernels* rows = kernels_for(isa) ? rows_highway(isa) : nullptr)
      all.push_back({"highway level " + std::to_string(static_cast<int>(isa)), rows});
  return all;
}

/// A row in the middle of guarded memory, `offset` floats away from 64-byte alignment.
class Row {
 public:
  Row(int64_t n, int offset, float low, float high, unsigned seed)
      : n_(n), memory_(static_cast<size_t>(n) + 64, kGuard) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    data_ = memory_.data() + (64 - address % 64) % 64 / sizeof(float) + 16 + offset;
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> draw(low, high);
    for (int64_t i = 0; i < n; i++) data_[i] = draw(random);
    before_.assign(data_, data_ + n);
  }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  float* data() { return data_; }
  int64_t size() const { return n_; }
  double at(int64_t i) const { return before_[static_cast<size_t>(i)]; }  ///< as it was before the kernel ran
  bool guards_hold() const {
    for (const float& f : memory_)
      if ((&f < data_ || &f >= data_ + n_) && f != kGuard) return false;
    return true;
  }

 private:
  int64_t n_;
  std::vector<float> memory_;
  float* data_;
  std::vector<float> before_;
};

/// Runs check(kernels, n, offset) for every table, length and alignment.
void everywhere(const std::function<void(const RowKernels&, int64_t, int)>& check) {
  for (const Table& table : tables())
    for (int64_t n : kLengths)
      for (int offset : {0, 1}) {
        SCOPED_TRACE(table.name + ", n = " + std::to_string(n) + ", offset " + std::to_string(offset));
        check(*table.rows, n, offset);
        if (testing::Test::HasFailure()) return;
      }
}

void expect_row(Row& row, const std::function<double(int64_t)>& expected, double absolute, double relative) {
  for (int64_t i = 0; i < row.size(); i++) {
    const double want = expected(i);
    ASSERT_NEAR(row.data()[i], want, absolute + relative * std::abs(want)) << "at " << i;
  }
  EXPECT_TRUE(row.guards_hold());
}

using Unary = void (*RowKernels::*)(const float*, int64_t, float*) noexcept;

void expect_unary(Unary kernel, double (*formula)(double), double absolute, double relative) {
  everywhere([&](const RowKernels& k, int64_t n, int offset) {
    Row x(n, offset, -12, 12, 1), y(n, 1 - offset, 0, 0, 2);
    (k.*kernel)(x.data(), n, y.data());
    expect_row(
        y, [&](int64_t i) { return formula(x.at(i)); }, absolute, relative);
    (k.*kernel)(x.data(), n, x.data());  // in place: the same bits
    EXPECT_EQ(n == 0 ? 0 : std::memcmp(x.data(), y.data(), static_cast<size_t>(n) * sizeof(float)), 0);
    EXPECT_TRUE(x.guards_hold());
  });
}

double mean(const Row& x, const std::function<double(double)>& f) {
  double total = 0;
  for (int64_t i = 0; i < x.size(); i++) total += f(x.at(i));
  return x.size() > 0 ? total / static_cast<double>(x.size()) : 0;
}

TEST(Rows, SiluMatchesItsFormula) {
  expect_unary(
      &RowKernels::silu, [](double x) { return x / (1 + std::exp(-x)); }, 0, 1e-6);
}

TEST(Rows, GeluTanhMatchesItsFormula) {
  expect_unary(
      &RowKernels::gelu_tanh,
      [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); },
      1e-6, 1e-6);
}

TEST(Rows, GeluErfMatchesItsFormula) {
  expect_unary(
      &RowKernels::gelu_erf, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }, 3e-7, 1e-6);
}

TEST(Rows, ReluMatchesItsFormula) {
  expect_unary(
      &RowKernels::relu, [](double x) { return x < 0 ? 0 : x; }, 0, 0);
}

using Slope = void (*RowKernels::*)(const float*, const float*, int64_t, float*) noexcept;

// The derivative from the formula's central difference in double.
void expect_slope(Slope kernel, double (*formula)(double)) {
  everywhere([&](const RowKernels& k, int64_t n, int offset) {
    Row x(n, offset, -12, 12, 1), dy(n, offset, -2, 2, 3), dx(n, 1 - offset, 0, 0, 2);
    (k.*kernel)(x.data(), dy.data(), n, dx.data());
    expect_row(
        dx,
        [&](int64_t i) {
          constexpr double h = 1e-5;
          return dy.at(i) * (formula(x.at(i) + h) - formula(x.at(i) - h)) / (2 * h);
        },
        2e-6, 2e-6);
  });
}

TEST(Rows, BackwardOfActivationsIsTheirSlope) {
  expect_slope(&RowKernels::silu_backward, [](double x) { return x / (1 + std::exp(-x)); });
  expect_slope(&RowKernels::gelu_tanh_backward, [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  });
  expect_slope(&RowKernels::gelu_erf_backward,
               [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); });
  expect_slope(&RowKernels::relu_backward, [](double x) { return x < 0 ? 0 : x; });
}

TEST(Rows, ActivationsOfHugeInputsAreTheirLimits) {
  for (const Table& table : tables()) {
    for (Unary kernel : {&RowKernels::silu, &RowKernels::gelu_tanh, &RowKernels::gelu_erf}) {
      float x[] = {1000, -1000, 90, -90, kInf, kNan}, y[6];
      (table.rows->*kernel)(x, 6, y);
      EXPECT_EQ(y[0], 1000) << table.name;
      EXPECT_NEAR(y[1], 0, 1e-30) << table.name;
      EXPECT_EQ(y[2], 90) << table.name;
      EXPECT_NEAR(y[3], 0, 1e-30) << table.name;
      EXPECT_EQ(y[4], kInf) << table.name;
      EXPECT_TRUE(std::isnan(y[5])) << table.name;
    }
  }
}

TEST(Rows, RmsNormMatchesItsFormulaWithAndWithoutGamma) {
  everywhere([](const RowKernels& k, int64_t n, int offset) {
    for (bool with_gamma : {true, false}) {
      Row x(n, offset, -3, 3, 3), gamma(n, 1 - offset, 0.5, 2, 4), y(n, offset, 0, 0, 5);
      const double sigma = std::sqrt(mean(x, [](double v) { return v * v; }) + 1e-5f);
      const float got = k.rms_norm(x.data(), with_gamma ? gamma.data() : nullptr, 1e-5f, n, y.data());
      EXPECT_NEAR(got, sigma, 2e-7 * sigma);
      expect_row(
          y, [&](int64_t i) { return x.at(i) / sigma * (with_gamma ? gamma.at(i) : 1); }, 0, 4e-7);
      k.rms_norm(x.data(), with_gamma ? gamma.data() : nullptr, 1e-5f, n, x.data());
      EXPECT_EQ(n == 0 ? 0 : std::memcmp(x.data(), y.data(), static_cast<size_t>(n) * sizeof(float)), 0);
    }
  });
}

TEST(Rows, LayerNormMatchesItsFormulaWithAndWithoutGammaAndBeta) {
  everywhere([](const RowKernels& k, int64_t n, int offset) {
    for (int parts : {0, 1, 2, 3}) {
      Row x(n, offset, -2, 4, 6), gamma(n, 1 - offset, 0.5, 2, 7), beta(n, offset, -1, 1, 8),
          y(n, offset, 0, 0, 9);
      const double mu = mean(x, [](double v) { return v; });
      const double sigma = std::sqrt(mean(x, [&](double v) { return (v - mu) * (v - mu); }) + 1e-5f);
      const float* g = parts & 1 ? gamma.data() : nullptr;
      const float* b = parts & 2 ? beta.data() : nullptr;
      float got_mu = kNan;
      EXPECT_NEAR(k.layer_norm(x.data(), g, b, 1e-5f, n, y.data(), &got_mu), sigma, 2e-7 * sigma);
      EXPECT_NEAR(got_mu, mu, 2e-7 * std::abs(mu));
      const auto formula = [&](int64_t i) {
        return (x.at(i) - mu) / sigma * (g != nullptr ? gamma.at(i) : 1) + (b != nullptr ? beta.at(i) : 0);
      };
      // A row of one value is 0 / √eps: what is left of x − μ's rounding grows by 1 / σ.
      expect_row(y, formula, 1e-6 + (n == 1 ? 4e-7 * std::abs(mu) / sigma : 0), 1e-6);
      k.layer_norm(x.data(), g, b, 1e-5f, n, x.data(), &got_mu);
      EXPECT_EQ(n == 0 ? 0 : std::memcmp(x.data(), y.data(), static_cast<size_t>(n) * sizeof(float)), 0);
    }
  });
}

TEST(Rows, NormsStayAccurateWithOutliersAndALargeMean) {
  for (const Table& table : tables()) {
    Row x(8192, 0, -1, 1, 10), y(8192, 0, 0, 0, 11);
    Row big(8192, 0, 999, 1001, 12);
    x.data()[5000] = 3000;  // one activation far above the others, as real models have
    double squares = 0;
    for (int64_t i = 0; i < 8192; i++) squares += static_cast<double>(x.data()[i]) * x.data()[i];
    const double sigma = std::sqrt(squares / 8192);
    EXPECT_NEAR(table.rows->rms_norm(x.data(), nullptr, 0, 8192, y.data()), sigma, 1e-7 * sigma)
        << table.name;
    const double mu = mean(big, [](double v) { return v; });
    const double deviation = std::sqrt(mean(big, [&](double v) { return (v - mu) * (v - mu); }));
    float got_mu;
    EXPECT_NEAR(table.rows->layer_norm(big.data(), nullptr, nullptr, 0, 8192, y.data(), &got_mu), deviation,
                1e-7)
        << table.name;
    EXPECT_NEAR(got_mu, mu, 1e-7 * mu) << table.name;
  }
}

TEST(Rows, ElementWiseArithmeticMatchesItsFormulas) {
  everywhere([](const RowKernels& k, int64_t n, int offset) {
    const auto check = [&](const std::function<void(float*, const float*)>& run,
                           const std::function<double(double, double)>& formula) {
      Row x(n, offset, -2, 2, 13), a(n, 1 - offset, -2, 2, 14);
      run(x.data(), a.data());
      expect_row(
          x, [&](int64_t i) { return formula(x.at(i), a.at(i)); }, 3e-7, 0);
    };
    check([&](float* x, const float* a) { k.add(x, a, n); }, [](double x, double a) { return x + a; });
    check([&](float* x, const float* a) { k.multiply(x, a, n); }, [](double x, double a) { return x * a; });
    check([&](float* x, const float* a) { k.scale_add(x, 0.75f, a, n); },
          [](double x, double a) { return 0.75 * x + a; });
    check([&](float* x, const float*) { k.scale(x, -1.5f, n); }, [](double x, double) { return -1.5 * x; });
    check([&](float* x, const float*) { k.soft_cap(x, 0.5f, n); },
          [](double x, double) { return 0.5 * std::tanh(x / 0.5); });
  });
}

TEST(Rows, SoftCapKeepsSmallValuesRelativelyExact) {
  for (const Table& table : tables()) {
    float x[] = {1e-3f, -1e-5f, 25, -400, 1e30f};
    const float before[] = {1e-3f, -1e-5f, 25, -400, 1e30f};
    table.rows->soft_cap(x, 50, 5);
    for (int i = 0; i < 5; i++) {
      const double want = 50 * std::tanh(before[i] / 50.0);
      EXPECT_NEAR(x[i], want, 1e-6 * std::abs(want)) << table.name;
    }
  }
}

TEST(Rows, RopeRotatesEachPairByItsAngle) {
  everywhere([](const RowKernels& k, int64_t half, int offset) {
    Row x(2 * half, offset, -2, 2, 15), cos(half, 1 - offset, -1, 1, 16), sin(half, offset, -1, 1, 17);
    k.rope(x.data(), cos.data(), sin.data(), half);
    const auto formula = [&](int64_t i) {
      if (i < half) return x.at(i) * cos.at(i) - x.at(i + half) * sin.at(i);
      return x.at(i) * cos.at(i - half) + x.at(i - half) * sin.at(i - half);
    };
    expect_row(x, formula, 5e-7, 0);
  });
}

double log_sum(const Row& x) {
  double total = 0;
  for (int64_t i = 0; i < x.size(); i++) total += std::exp(x.at(i));
  return std::log(total);
}

TEST(Rows, SoftmaxAndLogSumExpMatchTheirFormulas) {
  everywhere([](const RowKernels& k, int64_t n, int offset) {
    Row x(n, offset, -20, 20, 18), y(n, 1 - offset, 0, 0, 19);
    const double log_total = log_sum(x);
    const float got = k.log_sum_exp(x.data(), n);
    if (n == 0) {
      EXPECT_EQ(got, -kInf);
    } else {
      EXPECT_NEAR(got, log_total, 1e-6 * std::abs(log_total) + 1e-7);
    }
    k.softmax(x.data(), n, y.data());
    expect_row(
        y, [&](int64_t i) { return std::exp(x.at(i) - log_total); }, 1e-9, 4e-6);
    k.softmax(x.data(), n, x.data());
    EXPECT_EQ(n == 0 ? 0 : std::memcmp(x.data(), y.data(), static_cast<size_t>(n) * sizeof(float)), 0);
  });
}

TEST(Rows, SoftmaxGivesMaskedEntriesExactlyZeroAndDoesNotHideNan) {
  for (const Table& table : tables()) {
    for (size_t n : {size_t{5}, size_t{40}}) {
      std::vector<float> x(n, 1000.0f), y(n);
      x[1] = -kInf;
      x[3] = 800.0f;
      table.rows->softmax(x.data(), static_cast<int64_t>(n), y.data());
      EXPECT_EQ(y[1], 0) << table.name;
      EXPECT_EQ(y[3], 0) << table.name;
      EXPECT_NEAR(y[0], 1.0 / static_cast<double>(n - 2), 1e-7) << table.name;
      EXPECT_NEAR(table.rows->log_sum_exp(x.data(), static_cast<int64_t>(n)), 1000 + std::log(n - 2.0), 1e-4);
      x[n - 2] = kNan;
      table.rows->softmax(x.data(), static_cast<int64_t>(n), y.data());
      EXPECT_TRUE(std::isnan(y[0])) << table.name;
      EXPECT_TRUE(std::isnan(table.rows->log_sum_exp(x.data(), static_cast<int64_t>(n)))) << table.name;
    }
  }
}

TEST(Rows, ArgmaxFindsTheFirstLargestWhereverItStands) {
  everywhere([](const RowKernels& k, int64_t n, int offset) {
    Row x(n, offset, -1, 1, 20);
    if (n == 0) {
      EXPECT_EQ(k.argmax(x.data(), 0), -1);
      return;
    }
    for (int64_t i = 0; i < n; i++) {
      const float kept = x.data()[i];
      x.data()[i] = 2;
      x.data()[n - 1] = 2;  // an equal value further on does not win
      ASSERT_EQ(k.argmax(x.data(), n), i);
      x.data()[i] = kept;
    }
  });
}

TEST(Rows, ArgmaxNeverChoosesNanWhileThereIsANumber) {
  for (const Table& table : tables()) {
    for (size_t n : {size_t{3}, size_t{35}}) {
      std::vector<float> x(n, kNan);
      EXPECT_EQ(table.rows->argmax(x.data(), static_cast<int64_t>(n)), 0) << table.name;
      x[2] = -kInf;
      EXPECT_EQ(table.rows->argmax(x.data(), static_cast<int64_t>(n)), 2) << table.name;
      x[1] = -7;
      EXPECT_EQ(table.rows->argmax(x.data(), static_cast<int64_t>(n)), 1) << table.name;
    }
  }
}

TEST(Rows, BitsDoNotDependOnAlignment) {
  for (const Table& table : tables()) {
    Row reference(1003, 0, -3, 3, 21);
    std::vector<float> y(1003), z(1003);
    const float sigma = table.rows->rms_norm(reference.data(), nullptr, 1e-6f, 1003, y.data());
    const float log_total = table.rows->log_sum_exp(reference.data(), 1003);
    for (int offset = 1; offset < 16; offset++) {
      Row x(1003, offset, -3, 3, 21);
      EXPECT_EQ(table.rows->log_sum_exp(x.data(), 1003), log_total) << table.name;
      EXPECT_EQ(table.rows->rms_norm(x.data(), nullptr, 1e-6f, 1003, z.data()), sigma) << table.name;
      EXPECT_EQ(y, z) << table.name;
    }
  }
}

}  // namespace
}  // namespace liuli::kernels
