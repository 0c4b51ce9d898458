#include "ops/linear.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/check.h"
#include "ops/columns.h"
#include "ops/gemm.h"

namespace liuli {
namespace {

using kernels::ActivationChunk;
using kernels::kPanelRows;

// Rows that pass through a matrix together. Decode: the kernels keep 16 rows' activations in L1 and L2;
// prompt: C of a column block stays in L2; f32: as many as share the decoding of a weight row.
constexpr int64_t kDecodeRows = 16, kPromptRows = 512, kF32Rows = 4096;

const kernels::WeightKernels& kernels_of(const OpContext& c, const Matrix& m) {
  return c.kernels.weights[static_cast<size_t>(m.type())];
}

// The prompt product of a matrix: F16's eleven bits are more than bf16 would keep.
const kernels::PromptKernels& prompt_kernels(const OpContext& c, const Matrix& m) {
  if (multiplies_in_int8(c, m)) return c.kernels.prompt_int8;
  return kernels_of(c, m).expand_fixed16 != nullptr ? c.kernels.prompt_fixed16 : c.kernels.prompt;
}

// A call, and its input in the form that the class multiplies.
struct Product {
  LinearJob job;
  Rows x;
  const void* input = nullptr;
};

bool same_input(const Product& a, const Product& b) { return a.x.data == b.x.data && a.x.n == b.x.n; }

// Waking the other threads costs about as much as reading this many bytes of weights.
constexpr size_t kWorthForking = size_t{64} << 10;
constexpr int64_t kSmallestPiece = int64_t{32} << 10;  // of weights: a panel or more

// The panels of all products one after another, cut by bytes into pieces for the threads: f(product, first, last, thread).
// Weights that lie as plain rows have none.
template <class F>
void for_each_panel_range(OpContext& c, std::span<const Product> products, F&& f) {
  size_t total = 0, work = 0;
  for (const Product& p : products) {
    if (!p.job.weight->has_panels()) continue;
    total += p.job.weight->run_bytes();
    work += p.job.weight->run_bytes() * static_cast<size_t>(p.x.n);
  }
  const auto run_piece = [&](int64_t begin, int64_t end, int thread) {
    size_t at = 0;
    for (const Product& p : products) {
      if (!p.job.weight->has_panels()) continue;
      const size_t bytes = p.job.weight->panel_bytes(), n = static_cast<size_t>(p.job.weight->n_panels());
      // A panel belongs to the piece its first byte lies in.
      auto index = [&](int64_t position) {
        const auto byte = static_cast<size_t>(position);
        return byte <= at ? 0 : std::min(n, (byte - at + bytes - 1) / bytes);
      };
      const size_t first = index(begin), last = index(end);
      if (first < last) f(p, static_cast<int>(first), static_cast<int>(last), thread);
      at += bytes * n;
    }
  };
  const auto bytes = static_cast<int64_t>(total);
  if (work <= kWorthForking) return run_piece(0, bytes, 0);
  c.pool.parallel_for(bytes, run_piece, std::max(kSmallestPiece, bytes / (8 * int64_t{c.pool.size()})));
}

void add_bias(const LinearJob& job, int first_panel, int last_panel) {
  if (job.bias == nullptr) return;
  const int64_t begin = int64_t{first_panel} * kPanelRows;
  const int64_t end = std::min(int64_t{last_panel} * kPanelRows, job.weight->d_out());
  for (int64_t i = 0; i < job.y.n; i++) {
    float* y = job.y.row(i);
    for (int64_t o = begin; o < end; o++) y[o] += job.bias[o];
  }
}

using PanelKernel = void (*)(const uint8_t*, int64_t, const float*, ptrdiff_t, int, float*,
                             ptrdiff_t) noexcept;

// f32 activations, panel by panel: the f32 class, and the decode class of float types.
void multiply_f32(PanelKernel kernel, const Product& p, int first, int last) {
  for (int panel = first; panel < last; panel++)
    kernel(p.job.weight->panels() + static_cast<size_t>(panel) * p.job.weight->panel_bytes(), p.x.width,
           p.x.data, p.x.stride, static_cast<int>(p.x.n), p.job.y.data + int64_t{panel} * kPanelRows,
           p.job.y.stride);
}

void multiply_x16(const OpContext& c, const Product& p, int first, int last) {
  const auto& kernel = kernels_of(c, *p.job.weight);
  for (int panel = first; panel < last; panel++)
    kernel.decode_x16(p.job.weight->panels() + static_cast<size_t>(panel) * p.job.weight->panel_bytes(),
                      p.x.width, static_cast<const ActivationChunk*>(p.input), static_cast<int>(p.x.n),
                      p.job.y.data + int64_t{panel} * kPanelRows, p.job.y.stride);
}

// Quantises each distinct input that meets a matrix of codes.
void quantise_inputs(OpContext& c, std::span<Product> products) {
  struct Pending {
    Rows x;
    ActivationChunk* to;
  };
  auto* pending = c.scratch.array<Pending>(static_cast<int64_t>(products.size()));
  int64_t n = 0;
  const Product* last = nullptr;
  for (Product& p : products) {
    if (!kernels_of(c, *p.job.weight).integer_decode) continue;
    if (last == nullptr || !same_input(*last, p)) {
      pending[n] = {p.x, c.scratch.array<ActivationChunk>(p.x.n * kernels::activation_chunks(p.x.width))};
      n++;
    }
    p.input = pending[n - 1].to;
    last = &p;
  }
  for_each_row(c, n, [&](int64_t i) {
    const Rows x = pending[i].x;
    c.kernels.quantize_x16(x.data, x.stride, static_cast<int>(x.n), x.width, pending[i].to);
  });
}

void decode_class(OpContext& c, std::span<Product> products) {
  quantise_inputs(c, products);
  for_each_panel_range(c, products, [&](const Product& p, int first, int last, int) {
    const auto& kernel = kernels_of(c, *p.job.weight);
    if (kernel.integer_decode)
      multiply_x16(c, p, first, last);
    else
      multiply_f32(kernel.decode_f32, p, first, last);
    add_bias(p.job, first, last);
  });
}

// An input that is still to be packed, and where its strips of 16 rows stand among those of all inputs.
struct PendingInput {
  const kernels::PromptKernels* prompt;
  Rows x;
  uint8_t* to;
  int64_t first_strip, strips;
};

// Packs each distinct input; all strips in one go: a layer's experts have a few each.
void pack_inputs(OpContext& c, std::span<Product> products) {
  auto* pending = c.scratch.array<PendingInput>(static_cast<int64_t>(products.size()));
  int64_t n = 0, strips = 0;
  for (size_t i = 0; i < products.size(); i++) {
    Product& p = products[i];
    const auto& prompt = prompt_kernels(c, *p.job.weight);
    if (i == 0 || !same_input(products[i - 1], p) || pending[n - 1].prompt != &prompt) {
      const int rows = static_cast<int>(p.x.n);
      auto* to = c.scratch.array<uint8_t>(static_cast<int64_t>(prompt.packed_bytes(rows, p.x.width)));
      pending[n++] = {&prompt, p.x, to, strips, (p.x.n + 15) / 16};
      strips += pending[n - 1].strips;
    }
    p.input = pending[n - 1].to;
  }
  c.pool.parallel_for(strips, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = 0; i < n; i++) {
      const PendingInput& p = pending[i];
      for (int64_t strip = std::max(begin - p.first_strip, int64_t{0});
           strip < std::min(end - p.first_strip, p.strips); strip++)
        p.prompt->pack_strip(p.x.data, p.x.stride, static_cast<int>(p.x.n), p.x.width,
                             static_cast<int>(strip), p.to);
    }
  });
}

void prompt_class(OpContext& c, std::span<Product> products) {
  pack_inputs(c, products);
  size_t scratch_bytes = 0;
  for (const Product& p : products)
    scratch_bytes = std::max(
        scratch_bytes, prompt_kernels(c, *p.job.weight).scratch_bytes(static_cast<int>(p.x.n), p.x.width));
  scratch_bytes = static_cast<size_t>(round_up(static_cast<int64_t>(scratch_bytes), 64));
  auto* scratch = c.scratch.array<uint8_t>(static_cast<int64_t>(scratch_bytes) * c.pool.size());
  for_each_panel_range(c, products, [&](const Product& p, int first, int last, int thread) {
    const Matrix& w = *p.job.weight;
    prompt_kernels(c, w).multiply(kernels_of(c, w), w.panels(), w.panel_bytes(), first, last, p.x.width,
                                  static_cast<const uint8_t*>(p.input), static_cast<int>(p.x.n), p.job.y.data,
                                  p.job.y.stride, scratch + scratch_bytes * static_cast<size_t>(thread));
    add_bias(p.job, first, last);
  });
}

// Rows of a panel range decoded once and met by many rows of x: the same accumulation as the panel kernel's (one f32
// accumulator, k ascending), hence the same bits, without decoding once per 16 rows.
constexpr int64_t kFewRows = 2 * kDecodeRows;

// The product packs x again for every group of panels: 8 panels spend a fifth of the time on that at 768 columns,
// 4 MiB of decoded weights next to nothing.
int panels_decoded_together(int64_t k) {
  constexpr int64_t kDecodedFloats = int64_t{1} << 20;
  return static_cast<int>(std::clamp<int64_t>(kDecodedFloats / (kPanelRows * k), 8, 64));
}

struct DecodedWeights {
  const float* at;
  int64_t k_stride, row_stride;
};

// Panels [first, last). Those of F32 lie column by column, 16 rows each, as the product likes it best.
DecodedWeights decode_panels(const Matrix& w, int first, int last, float* out, std::vector<uint8_t>& stored) {
  const int64_t rows = int64_t{last - first} * kPanelRows;
  if (w.type() == DType::f32) {
    for (int panel = first; panel < last; panel++) {
      const uint8_t* column = w.panels() + static_cast<size_t>(panel) * w.panel_bytes();
      float* to = out + int64_t{panel - first} * kPanelRows;
      for (int64_t k = 0; k < w.d_in(); k++, column += kPanelRows * sizeof(float), to += rows)
        std::memcpy(to, column, kPanelRows * sizeof(float));
    }
    return {out, rows, 1};
  }
  const int64_t begin = int64_t{first} * kPanelRows, end = std::min(begin + rows, w.d_out());
  for (int64_t o = begin; o < end; o++) w.decode_row(o, out + (o - begin) * w.d_in(), stored);
  return {out, 1, w.d_in()};
}

void multiply_decoded(const OpContext& c, const Product& p, int first, int last, float* scratch) {
  const Matrix& w = *p.job.weight;
  const int together = panels_decoded_together(w.d_in());
  std::vector<uint8_t> stored;
  float* packing = scratch + round_up(int64_t{together} * kPanelRows * w.d_in(), 16);
  for (int panel = first; panel < last; panel += together) {
    const int end = std::min(panel + together, last);
    const int64_t begin = int64_t{panel} * kPanelRows,
                  n = std::min(int64_t{end} * kPanelRows, w.d_out()) - begin;
    const DecodedWeights b = decode_panels(w, panel, end, scratch, stored);
    c.kernels.gemm.multiply({p.x.n, n, w.d_in(), p.x.data, p.x.stride, 1, b.at, b.k_stride, b.row_stride,
                             p.job.y.data + begin, p.job.y.stride},
                            packing);
  }
}

// Weights that lie as plain f32 rows (training's): multiplied where they are, all rows of x in one go, so that the
// weights are packed once and not once per group of rows.
void multiply_plain_rows(OpContext& c, const Product& p) {
  const Matrix& w = *p.job.weight;
  gemm(c, {p.x.n, w.d_out(), p.x.width, p.x.data, p.x.stride, 1, w.f32_rows(), 1, p.x.width, p.job.y.data,
           p.job.y.stride});
  add_bias(p.job, 0, static_cast<int>(w.n_panels()));
}

void f32_class(OpContext& c, std::span<Product> products) {
  int64_t floats = 0;
  for (const Product& p : products) {
    if (p.x.n <= kFewRows) continue;
    const int64_t rows = int64_t{panels_decoded_together(p.x.width)} * kPanelRows;
    const auto packing = static_cast<int64_t>(c.kernels.gemm.scratch_floats(p.x.n, rows, p.x.width));
    floats = std::max(floats, round_up(rows * p.x.width, 16) + round_up(packing, 16));
  }
  float* scratch = c.scratch.floats(floats * c.pool.size());
  for_each_panel_range(c, products, [&](const Product& p, int first, int last, int thread) {
    if (p.x.n > kFewRows)
      multiply_decoded(c, p, first, last, scratch + floats * thread);
    else
      multiply_f32(kernels_of(c, *p.job.weight).product_f32, p, first, last);
    add_bias(p.job, first, last);
  });
}

// Eight partial sums let the compiler use vectors; the order is fixed all the same.
double dot_double(const double* a, const float* w, int64_t n) {
  double sum[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int j = 0; j < 8; j++) sum[j] += a[i + j] * static_cast<double>(w[i + j]);
  for (int j = 0; i < n; i++, j++) sum[j] += a[i] * static_cast<double>(w[i]);
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

// One row of a product's weights, decoded, against all rows of x.
void exact_row(const Product& p, int64_t o, float* w, std::vector<uint8_t>& file_row) {
  const auto* wide = static_cast<const double*>(p.input);
  p.job.weight->decode_row(o, w, file_row);
  const double bias = p.job.bias != nullptr ? static_cast<double>(p.job.bias[o]) : 0.0;
  for (int64_t i = 0; i < p.x.n; i++)
    p.job.y.row(i)[o] = static_cast<float>(dot_double(wide + i * p.x.width, w, p.x.width) + bias);
}

// The second opinion: every weight row is decoded once and met by all rows of x, in double.
void exact_class(OpContext& c, std::span<Product> products) {
  int64_t rows = 0, widest = 0, work = 0;
  for (Product& p : products) {
    auto* wide = c.scratch.array<double>(p.x.n * p.x.width);
    for (int64_t i = 0; i < p.x.n; i++) std::copy_n(p.x.row(i), p.x.width, wide + i * p.x.width);
    p.input = wide;
    rows += p.job.weight->d_out();
    widest = std::max(widest, p.x.width);
    work += p.job.weight->d_out() * p.x.width * p.x.n;
  }
  const auto run_rows = [&](int64_t begin, int64_t end, int) {
    std::vector<float> w(static_cast<size_t>(widest));
    std::vector<uint8_t> file_row;
    int64_t at = 0;  // of all products' rows, one after another
    for (const Product& p : products) {
      const int64_t n = p.job.weight->d_out();
      for (int64_t o = std::max<int64_t>(begin - at, 0); o < std::min(end - at, n); o++)
        exact_row(p, o, w.data(), file_row);
      at += n;
    }
  };
  if (work <= static_cast<int64_t>(kWorthForking / sizeof(float))) return run_rows(0, rows, 0);
  c.pool.parallel_for(rows, run_rows);
}

using ClassFunction = void (*)(OpContext&, std::span<Product>);

// Runs `f` over groups of rows, giving scratch back after each.
void in_row_groups(OpContext& c, std::span<const Product> products, int64_t group, ClassFunction f) {
  int64_t rows = 0;
  for (const Product& p : products) rows = std::max(rows, p.x.n);
  auto* part = c.scratch.array<Product>(static_cast<int64_t>(products.size()));
  for (int64_t at = 0; at < rows; at += group) {
    size_t count = 0;
    for (const Product& p : products) {
      const int64_t n = std::min(group, p.x.n - at);
      if (n <= 0) continue;
      part[count] = {p.job, p.x.slice(at, n), nullptr};
      part[count++].job.y = p.job.y.slice(at, n);
    }
    const Arena::Scope scratch(c.scratch);
    f(c, {part, count});
  }
}

void multiply(OpContext& c, std::span<const Product> products) {
  for (const Product& p : products)
    LIULI_CHECK(p.job.weight->d_in() == p.x.width && p.job.y.width == p.job.weight->d_out() &&
                p.job.y.n == p.x.n && p.job.y.stride >= round_up(p.job.weight->d_out(), kPanelRows));
  switch (c.product_class) {
    case ProductClass::prompt:
      return in_row_groups(c, products, kPromptRows, prompt_class);
    case ProductClass::decode:
      return in_row_groups(c, products, kDecodeRows, decode_class);
    case ProductClass::f32:
      for (const Product& p : products)
        if (!p.job.weight->has_panels()) multiply_plain_rows(c, p);
      return in_row_groups(c, products, kF32Rows, f32_class);
    case ProductClass::exact:
      return in_row_groups(c, products, kPromptRows, exact_class);
  }
}

}  // namespace

bool multiplies_in_int8(const OpContext& c, const Matrix& m) {
  return c.int8_prompts && kernels_of(c, m).expand_codes != nullptr;
}

const char* to_string(ProductClass product_class) {
  switch (product_class) {
    case ProductClass::prompt:
      return "prompt";
    case ProductClass::decode:
      return "decode";
    case ProductClass::f32:
      return "f32";
    case ProductClass::exact:
      return "exact";
  }
  return "?";
}

void linear_forward(OpContext& c, Rows x, std::span<const LinearJob> jobs) {
  const Arena::Scope scratch(c.scratch);
  auto* products = c.scratch.array<Product>(static_cast<int64_t>(jobs.size()));
  for (size_t i = 0; i < jobs.size(); i++) products[i] = {jobs[i], x, nullptr};
  multiply(c, {products, jobs.size()});
}

void linear_forward_each(OpContext& c, std::span<const LinearCall> calls) {
  const Arena::Scope scratch(c.scratch);
  auto* products = c.scratch.array<Product>(static_cast<int64_t>(calls.size()));
  for (size_t i = 0; i < calls.size(); i++) products[i] = {calls[i].job, calls[i].x, nullptr};
  multiply(c, {products, calls.size()});
}

void linear_backward(OpContext& c, const TrainedLinear& w, Rows x, Rows dy, Rows dx, bool accumulate) {
  LIULI_CHECK(x.n == dy.n && x.width == w.d_in && dy.width == w.d_out);
  if (w.d_weight != nullptr)
    gemm(c, {w.d_out, w.d_in, x.n, dy.data, 1, dy.stride, x.data, x.stride, 1, w.d_weight, w.d_in, true});
  if (w.d_bias != nullptr) add_column_sums(c, dy, w.d_bias);
  if (dx.n > 0)
    gemm(c,
         {dy.n, w.d_in, w.d_out, dy.data, dy.stride, 1, w.weight, w.d_in, 1, dx.data, dx.stride, accumulate});
}

}  // namespace liuli
