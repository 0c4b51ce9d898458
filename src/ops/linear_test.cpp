#include "ops/linear.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>

#include "kernels/panel_samples.h"
#include "ops/product_operands.h"

namespace liuli {
namespace {

// F32 weights of awkward sizes: every class, one and several rows, with and without bias, one and two jobs.
struct Problem {
  int64_t d_in, d_out, n;
  std::vector<float> w, x, bias;

  Problem(int64_t in, int64_t out, int64_t rows) : d_in(in), d_out(out), n(rows) {
    unsigned seed = static_cast<unsigned>(in * 7 + out);
    auto next = [&] {
      seed = seed * 1664525u + 1013904223u;
      return static_cast<float>(static_cast<int>(seed >> 8) % 2001 - 1000) / 1000.0f;
    };
    for (int64_t i = 0; i < in * out; i++) w.push_back(next());
    for (int64_t i = 0; i < in * rows; i++) x.push_back(next());
    for (int64_t i = 0; i < out; i++) bias.push_back(next());
  }
  double exact(int64_t row, int64_t o) const {
    double sum = static_cast<double>(bias[static_cast<size_t>(o)]);
    for (int64_t k = 0; k < d_in; k++)
      sum += static_cast<double>(w[static_cast<size_t>(o * d_in + k)]) *
             static_cast<double>(x[static_cast<size_t>(row * d_in + k)]);
    return sum;
  }
};

struct Harness {
  ThreadPool pool;
  Arena arena;
  OpContext c;
  Harness(int threads, ProductClass product_class)
      : pool(threads),
        c{kernels::best_kernels(),
          kernels::best_kernels().rows,
          kernels::best_kernels().attention,
          pool,
          arena,
          product_class} {}

  Rows rows(const Problem& p, int64_t first, int64_t count) {
    Rows x = make_rows(arena, count, p.d_in);
    for (int64_t i = 0; i < count; i++)
      std::memcpy(x.row(i), p.x.data() + (first + i) * p.d_in, static_cast<size_t>(p.d_in) * sizeof(float));
    return x;
  }
  Rows multiply(const Problem& p, int64_t first, int64_t count) {
    Matrix w("w", DType::f32, p.d_out, p.d_in, reinterpret_cast<const uint8_t*>(p.w.data()));
    if (c.product_class != ProductClass::exact) w.build_panels(pool);
    Rows y = make_rows(arena, count, p.d_out), twin = make_rows(arena, count, p.d_out);
    linear_forward(c, rows(p, first, count), {LinearJob{&w, p.bias.data(), y}, LinearJob{&w, nullptr, twin}});
    for (int64_t i = 0; i < count; i++)
      for (int64_t o = 0; o < p.d_out; o++)
        EXPECT_EQ(twin.row(i)[o] + p.bias[static_cast<size_t>(o)], y.row(i)[o]);
    return y;
  }
};

double nmse(const Problem& p, Rows y) {
  double error = 0, power = 0;
  for (int64_t i = 0; i < p.n; i++)
    for (int64_t o = 0; o < p.d_out; o++) {
      const double e = p.exact(i, o);
      error += std::pow(static_cast<double>(y.row(i)[o]) - e, 2);
      power += e * e;
    }
  return error / power;
}

TEST(Linear, EveryClassIsAsCloseAsPromised) {
  for (const auto& [d_in, d_out, n] : {std::tuple{18, 5, 1}, {64, 16, 3}, {133, 47, 17}, {576, 100, 40}}) {
    const Problem p(d_in, d_out, n);
    for (auto [product_class, bound] :
         {std::pair{ProductClass::prompt, 1e-5}, {ProductClass::decode, 1e-9}, {ProductClass::f32, 1e-11}}) {
      Harness run(2, product_class);
      EXPECT_LE(nmse(p, run.multiply(p, 0, n)), bound)
          << d_in << "x" << d_out << " " << to_string(product_class);
    }
  }
}

// The prompt class of F16 weights: activations and weights in 16-bit fixed point, one scale per row and 64 columns.
TEST(Linear, PromptsMeetF16WeightsCloserThanF16ActivationsWould) {
  for (const auto& [d_in, d_out, n] : {std::tuple{18, 5, 1}, {133, 47, 17}, {576, 100, 40}}) {
    Problem p(d_in, d_out, n);
    std::vector<uint16_t> stored;
    for (float& w : p.w) {
      stored.push_back(f32_to_f16(w));
      w = f16_to_f32(stored.back());
    }
    Harness run(2, ProductClass::prompt);
    Matrix w("w", DType::f16, d_out, d_in, reinterpret_cast<const uint8_t*>(stored.data()));
    w.build_panels(run.pool);
    const Rows x = run.rows(p, 0, n);
    Rows y = make_rows(run.arena, n, d_out);
    linear_forward(run.c, x, {LinearJob{&w, p.bias.data(), y}});
    EXPECT_LE(nmse(p, y), 2e-8) << d_in << "x" << d_out;
    // and the operands that explanations show are those that were multiplied
    for (int64_t o = 0; o < d_out; o += 4) {
      const ProductOperands used = product_operands(run.c, w, o, {x.row(n - 1), static_cast<size_t>(d_in)});
      double sum = static_cast<double>(p.bias[static_cast<size_t>(o)]), size = 0;
      for (size_t i = 0; i < used.x.size(); i++) {
        sum += used.x[i] * used.w[i];
        size += std::abs(used.x[i] * used.w[i]);
      }
      EXPECT_STREQ(used.w_form, "16-bit integer · scale");
      EXPECT_NEAR(y.row(n - 1)[o], sum, 4e-7 * (size + 1));
    }
  }
}

TEST(Linear, ExactSumsInDouble) {
  const Problem p(133, 47, 17);
  Harness run(2, ProductClass::exact);
  Matrix w("w", DType::f32, p.d_out, p.d_in, reinterpret_cast<const uint8_t*>(p.w.data()));
  Rows y = make_rows(run.arena, p.n, p.d_out);
  linear_forward(run.c, run.rows(p, 0, p.n), {LinearJob{&w, p.bias.data(), y}});
  for (int64_t i = 0; i < p.n; i++)
    for (int64_t o = 0; o < p.d_out; o++)
      EXPECT_EQ(y.row(i)[o], static_cast<float>(p.exact(i, o))) << i << " " << o;
}

TEST(Linear, ARowDependsOnNothingButItself) {
  const Problem p(200, 75, 70);
  for (auto product_class : {ProductClass::prompt, ProductClass::decode, ProductClass::f32}) {
    Harness two(2, product_class), three(3, product_class);
    const Rows all = two.multiply(p, 0, p.n);
    for (int64_t first : {int64_t{0}, int64_t{1}, int64_t{33}, int64_t{69}}) {
      const Rows one = three.multiply(p, first, 1);
      EXPECT_EQ(std::memcmp(one.data, all.row(first), static_cast<size_t>(p.d_out) * sizeof(float)), 0)
          << to_string(product_class) << " row " << first;
    }
  }
}

// Inputs of their own, shared by neighbours, of different numbers of rows: each is what it would be alone.
TEST(Linear, CallsWithTheirOwnInputsAreEachAsAlone) {
  const Problem problems[] = {{200, 75, 3}, {64, 40, 35}, {18, 33, 1}};
  for (auto product_class :
       {ProductClass::prompt, ProductClass::decode, ProductClass::f32, ProductClass::exact}) {
    Harness run(2, product_class);
    std::vector<std::unique_ptr<Matrix>> weights;
    std::vector<LinearCall> calls;
    for (const Problem& p : problems) {
      weights.push_back(std::make_unique<Matrix>("w", DType::f32, p.d_out, p.d_in,
                                                 reinterpret_cast<const uint8_t*>(p.w.data())));
      if (product_class != ProductClass::exact) weights.back()->build_panels(run.pool);
      const Rows x = run.rows(p, 0, p.n);
      for (const float* bias : {p.bias.data(), static_cast<const float*>(nullptr)})
        calls.push_back({x, {weights.back().get(), bias, make_rows(run.arena, p.n, p.d_out)}});
    }
    linear_forward_each(run.c, calls);
    for (const LinearCall& call : calls) {
      Rows alone = make_rows(run.arena, call.x.n, call.job.y.width);
      linear_forward(run.c, call.x, {LinearJob{call.job.weight, call.job.bias, alone}});
      for (int64_t i = 0; i < alone.n; i++)
        EXPECT_EQ(
            std::memcmp(alone.row(i), call.job.y.row(i), static_cast<size_t>(alone.width) * sizeof(float)), 0)
            << to_string(product_class) << " " << call.x.width << " row " << i;
    }
  }
}

TEST(Matrix, RowOrderPutsInterleavedHeadsBack) {
  // Head of 8: the file lists the published rows 0, 4, 1, 5, 2, 6, 3, 7.
  const RowOrder order{1, 8};
  const int64_t published[] = {0, 4, 1, 5, 2, 6, 3, 7};
  for (int64_t file_row = 0; file_row < 8; file_row++)
    EXPECT_EQ(order.file_row(published[file_row]), file_row);
  // Two heads of 7, of which the last 4 rows are rotated: 3, 5, 4, 6 in the file's order.
  const RowOrder part{2, 7, 3};
  const int64_t in_file[] = {0, 1, 2, 3, 5, 4, 6, 7, 8, 9, 10, 12, 11, 13};
  for (int64_t row = 0; row < 14; row++) EXPECT_EQ(part.file_row(row), in_file[row]);
}

TEST(Matrix, PanelsGiveBackTheStoredRow) {
  const Problem p(96, 37, 1);
  Matrix w("w", DType::f32, p.d_out, p.d_in, reinterpret_cast<const uint8_t*>(p.w.data()));
  ThreadPool pool(2);
  w.build_panels(pool);
  std::vector<float> row(96);
  std::vector<uint8_t> scratch;
  for (int64_t o = 0; o < p.d_out; o++) {
    w.decode_row(o, row.data(), scratch);
    EXPECT_EQ(std::memcmp(row.data(), p.w.data() + o * 96, 96 * sizeof(float)), 0);
  }
}

/// Files by other writers put tensors anywhere: every type, one byte off, must give the bits of aligned rows.
TEST(Matrix, TakesRowsOfEveryTypeFromAnyAddress) {
  constexpr int64_t kRows = 19, kColumns = 256;
  ThreadPool pool(2);
  for (const DType type : kernels::all_types()) {
    SCOPED_TRACE(dtype_info(type).name);
    const std::vector<uint8_t> rows = kernels::random_rows(type, kRows, kColumns, 5);
    std::vector<uint8_t> shifted(rows.size() + 1);
    std::memcpy(shifted.data() + 1, rows.data(), rows.size());
    const Matrix aligned("w", type, kRows, kColumns, rows.data()),
        in_place("w", type, kRows, kColumns, shifted.data() + 1);
    Matrix panels("w", type, kRows, kColumns, shifted.data() + 1);
    panels.build_panels(pool);
    std::vector<float> expected(kColumns), mapped(kColumns), packed(kColumns);
    std::vector<uint8_t> scratch;
    for (int64_t row = 0; row < kRows; row++) {
      aligned.decode_row(row, expected.data(), scratch);
      in_place.decode_row(row, mapped.data(), scratch);
      panels.decode_row(row, packed.data(), scratch);
      EXPECT_EQ(std::memcmp(expected.data(), mapped.data(), kColumns * sizeof(float)), 0) << row;
      EXPECT_EQ(std::memcmp(expected.data(), packed.data(), kColumns * sizeof(float)), 0) << row;
    }
  }
}

TEST(Matrix, LetsGoOfRowsItOwnsOncePanelsAreBuilt) {
  const auto rows =
      std::make_shared<std::vector<uint8_t>>(kernels::random_rows(DType::f8_e4m3_b128, 16, 128, 5));
  Matrix w("w", DType::f8_e4m3_b128, 16, 128, FileRows{{rows, rows->data()}});
  EXPECT_EQ(rows.use_count(), 2);
  ThreadPool pool(1);
  w.build_panels(pool);
  EXPECT_EQ(rows.use_count(), 1);
}

TEST(Matrix, RowsToBeBuiltAreBuiltOnceForAllPartsAndGoWithTheLast) {
  const auto bytes = std::make_shared<std::vector<uint8_t>>(kernels::random_rows(DType::q8_0, 48, 64, 5));
  int builds = 0;
  const auto built = std::make_shared<BuiltRows>([&] {
    builds++;
    return std::shared_ptr<const uint8_t>(bytes, bytes->data());
  });
  const FileRows rows{nullptr, built};
  Matrix first("w", DType::q8_0, 16, 64, rows), rest("w", DType::q8_0, 32, 64, rows.from(16 * 68));
  ThreadPool pool(1);
  EXPECT_EQ(builds, 0);
  first.build_panels(pool);
  rest.hold_rows();
  std::vector<uint8_t> scratch;
  EXPECT_EQ(rest.stored_row(3, scratch), bytes->data() + 19 * 68);
  rest.build_panels(pool);
  EXPECT_EQ(builds, 1);
  EXPECT_EQ(built.use_count(), 2) << "only this test and its FileRows hold them";
  for (int64_t row = 0; row < 32; row++)
    EXPECT_EQ(std::memcmp(rest.stored_row(row, scratch), bytes->data() + (16 + row) * 68, 68), 0) << row;
}

// What was copied is told in ranges that together are all rows, whatever the order within heads.
TEST(Matrix, TellsWhichFileRowsItHasCopied) {
  constexpr int64_t kRows = 5 * 640, kColumns = 1024;
  const std::vector<uint8_t> rows = kernels::random_rows(DType::f16, kRows, kColumns, 5);
  for (const RowOrder order : {RowOrder{}, RowOrder{5, 640, 0}}) {
    ThreadPool pool(2);
    Matrix w("w", DType::f16, kRows, kColumns, rows.data(), order);
    const auto memory = std::make_shared<AlignedBuffer>(w.run_bytes());
    std::vector<std::atomic<int>> told(kRows);
    std::atomic<int> calls{0};
    w.build_panels(pool, {memory, memory->data()}, [&](const uint8_t* from, int64_t bytes) {
      calls++;
      const int64_t row = (from - rows.data()) / (2 * kColumns);
      for (int64_t i = row; i < row + bytes / (2 * kColumns); i++) told[static_cast<size_t>(i)]++;
    });
    EXPECT_GT(calls, 1);
    for (const auto& times : told) EXPECT_GT(times, 0);
  }
}

}  // namespace
}  // namespace liuli
