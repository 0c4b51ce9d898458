#include "ops/linear.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/check.h"

namespace liuli {
namespace {

using kernels::ActivationChunk;
using kernels::kPanelRows;

// Rows that pass through a matrix together. Decode: the kernels keep 16 rows' activations in L1 and L2;
// prompt: C of a column block stays in L2.
constexpr int64_t kDecodeRows = 16, kPromptRows = 512;

const kernels::WeightKernels& kernels_of(const OpContext& c, const Matrix& m) {
  return c.kernels.weights[static_cast<size_t>(m.type())];
}

// Splits the panels of all jobs into one contiguous share of bytes per thread and calls f(job, first, last,
// thread).
template <class F>
void for_each_panel_range(OpContext& c, std::span<const LinearJob> jobs, F&& f) {
  size_t total = 0;
  for (const LinearJob& job : jobs) total += job.weight->run_bytes();
  c.pool.run([&](int thread) {
    const size_t threads = static_cast<size_t>(c.pool.size());
    const size_t begin = total * static_cast<size_t>(thread) / threads;
    const size_t end = total * (static_cast<size_t>(thread) + 1) / threads;
    size_t at = 0;
    for (const LinearJob& job : jobs) {
      const size_t bytes = job.weight->panel_bytes(), n = static_cast<size_t>(job.weight->n_panels());
      // A panel belongs to the share its first byte lies in.
      auto index = [&](size_t position) {
        return position <= at ? 0 : std::min(n, (position - at + bytes - 1) / bytes);
      };
      const size_t first = index(begin), last = index(end);
      if (first < last) f(job, static_cast<int>(first), static_cast<int>(last), thread);
      at += bytes * n;
    }
  });
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
void multiply_f32(PanelKernel kernel, const LinearJob& job, Rows x, int first, int last) {
  for (int p = first; p < last; p++)
    kernel(job.weight->panels() + static_cast<size_t>(p) * job.weight->panel_bytes(), x.width, x.data,
           x.stride, static_cast<int>(x.n), job.y.data + int64_t{p} * kPanelRows, job.y.stride);
}

void multiply_x16(const OpContext& c, const LinearJob& job, Rows x, const ActivationChunk* act, int first,
                  int last) {
  const auto& kernel = kernels_of(c, *job.weight);
  for (int p = first; p < last; p++)
    kernel.decode_x16(job.weight->panels() + static_cast<size_t>(p) * job.weight->panel_bytes(), x.width, act,
                      static_cast<int>(x.n), job.y.data + int64_t{p} * kPanelRows, job.y.stride);
}

void decode_class(OpContext& c, Rows x, std::span<const LinearJob> jobs) {
  const bool quantise = std::any_of(jobs.begin(), jobs.end(), [&](const LinearJob& job) {
    return kernels_of(c, *job.weight).integer_decode;
  });
  ActivationChunk* act = nullptr;
  if (quantise) {
    act = c.scratch.array<ActivationChunk>(x.n * kernels::activation_chunks(x.width));
    c.kernels.quantize_x16(x.data, x.stride, static_cast<int>(x.n), x.width, act);
  }
  for_each_panel_range(c, jobs, [&](const LinearJob& job, int first, int last, int) {
    const auto& kernel = kernels_of(c, *job.weight);
    if (kernel.integer_decode)
      multiply_x16(c, job, x, act, first, last);
    else
      multiply_f32(kernel.decode_f32, job, x, first, last);
    add_bias(job, first, last);
  });
}

void prompt_class(OpContext& c, Rows x, std::span<const LinearJob> jobs) {
  const auto& prompt = c.kernels.prompt;
  const int n = static_cast<int>(x.n);
  auto* packed = c.scratch.array<uint8_t>(static_cast<int64_t>(prompt.packed_bytes(n, x.width)));
  const size_t scratch_bytes =
      static_cast<size_t>(round_up(static_cast<int64_t>(prompt.scratch_bytes(n, x.width)), 64));
  auto* scratch = c.scratch.array<uint8_t>(static_cast<int64_t>(scratch_bytes) * c.pool.size());
  c.pool.parallel_for((n + 15) / 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t strip = begin; strip < end; strip++)
      prompt.pack_strip(x.data, x.stride, n, x.width, static_cast<int>(strip), packed);
  });
  for_each_panel_range(c, jobs, [&](const LinearJob& job, int first, int last, int thread) {
    const Matrix& w = *job.weight;
    prompt.multiply(kernels_of(c, w), w.panels(), w.panel_bytes(), first, last, x.width, packed, n,
                    job.y.data, job.y.stride, scratch + scratch_bytes * static_cast<size_t>(thread));
    add_bias(job, first, last);
  });
}

void f32_class(OpContext& c, Rows x, std::span<const LinearJob> jobs) {
  for_each_panel_range(c, jobs, [&](const LinearJob& job, int first, int last, int) {
    multiply_f32(kernels_of(c, *job.weight).product_f32, job, x, first, last);
    add_bias(job, first, last);
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

// The second opinion: every weight row is decoded once and met by all rows of x, in double.
void exact_class(OpContext& c, Rows x, std::span<const LinearJob> jobs) {
  auto* wide = c.scratch.array<double>(x.n * x.width);
  for (int64_t i = 0; i < x.n; i++) std::copy_n(x.row(i), x.width, wide + i * x.width);
  for (const LinearJob& job : jobs)
    c.pool.parallel_for(job.weight->d_out(), [&](int64_t begin, int64_t end, int) {
      std::vector<float> w(static_cast<size_t>(x.width));
      std::vector<uint8_t> file_row;
      for (int64_t o = begin; o < end; o++) {
        job.weight->decode_row(o, w.data(), file_row);
        const double bias = job.bias != nullptr ? static_cast<double>(job.bias[o]) : 0.0;
        for (int64_t i = 0; i < x.n; i++)
          job.y.row(i)[o] = static_cast<float>(dot_double(wide + i * x.width, w.data(), x.width) + bias);
      }
    });
}

using ClassFunction = void (*)(OpContext&, Rows, std::span<const LinearJob>);

// Runs `f` over groups of rows, giving scratch back after each.
void in_row_groups(OpContext& c, Rows x, std::span<const LinearJob> jobs, int64_t group, ClassFunction f) {
  std::array<LinearJob, kMaxLinearJobs> part;
  std::copy(jobs.begin(), jobs.end(), part.begin());
  for (int64_t at = 0; at < x.n; at += group) {
    const int64_t n = std::min(group, x.n - at);
    for (size_t j = 0; j < jobs.size(); j++) part[j].y = jobs[j].y.slice(at, n);
    const auto mark = c.scratch.mark();
    f(c, x.slice(at, n), {part.data(), jobs.size()});
    c.scratch.release(mark);
  }
}

}  // namespace

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
  LIULI_CHECK(jobs.size() <= kMaxLinearJobs);
  if (x.n == 0) return;
  for (const LinearJob& job : jobs)
    LIULI_CHECK(job.weight->d_in() == x.width && job.y.width == job.weight->d_out() && job.y.n == x.n &&
                job.y.stride >= round_up(job.weight->d_out(), kPanelRows));
  switch (c.product_class) {
    case ProductClass::prompt:
      return in_row_groups(c, x, jobs, kPromptRows, prompt_class);
    case ProductClass::decode:
      return in_row_groups(c, x, jobs, kDecodeRows, decode_class);
    case ProductClass::f32:
      return in_row_groups(c, x, jobs, kDecodeRows, f32_class);
    case ProductClass::exact:
      return in_row_groups(c, x, jobs, kPromptRows, exact_class);
  }
}

}  // namespace liuli
