#include "ops/product_operands.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/check.h"
#include "core/half.h"
#include "kernels/scalar/block_codes.h"
#include "kernels/scalar/fixed16.h"
#include "kernels/scalar/int8_blocks.h"
#include "ops/linear.h"

namespace liuli {
namespace {

using kernels::ActivationChunk;

constexpr int64_t kChunk = 256;

// The form that a matrix and its input have when they are multiplied.
enum class Form { plain, bf16, fixed16, int8, x16 };

Form form_of(const OpContext& c, const Matrix& m) {
  const kernels::WeightKernels& kernel = c.kernels.weights[static_cast<size_t>(m.type())];
  if (c.product_class == ProductClass::decode && kernel.integer_decode) return Form::x16;
  if (c.product_class != ProductClass::prompt) return Form::plain;
  if (multiplies_in_int8(c, m)) return Form::int8;
  return kernel.expand_fixed16 != nullptr ? Form::fixed16 : Form::bf16;
}

// scale · q of every block; quantise(x, n, q) gives a block's scale.
template <class Q, int block, class F>
std::vector<double> in_blocks(std::span<const float> x, F&& quantise) {
  std::vector<double> used(x.size());
  for (size_t at = 0; at < x.size(); at += block) {
    const size_t n = std::min<size_t>(block, x.size() - at);
    Q q[block];
    const float scale = quantise(x.data() + at, static_cast<int>(n), q);
    for (size_t i = 0; i < n; i++) used[at + i] = static_cast<double>(scale) * q[i];
  }
  return used;
}

std::vector<double> fixed_point(std::span<const float> x) {
  return in_blocks<int16_t, kernels::kFixedBlock>(x, kernels::fixed16_block);
}

double rounded(float x) { return static_cast<double>(bf16_to_f32(f32_to_bf16(x))); }

std::vector<double> quantised_activations(const OpContext& c, std::span<const float> x) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<ActivationChunk> chunks(static_cast<size_t>(kernels::activation_chunks(n)));
  c.kernels.quantize_x16(x.data(), n, 1, n, chunks.data());
  std::vector<double> used(x.size());
  for (int64_t i = 0; i < n; i++) {
    const ActivationChunk& chunk = chunks[static_cast<size_t>(i / kChunk)];
    const int q = 256 * chunk.hi[i % kChunk] + chunk.lo[i % kChunk];
    used[static_cast<size_t>(i)] = static_cast<double>(chunk.scale) * q;
  }
  return used;
}

// The block codes of the chunk of 256 columns that `column` is in.
kernels::BlockCodes chunk_codes(const Matrix& m, const uint8_t* row, int64_t chunk) {
  kernels::BlockCodes codes{};
  const int64_t n = std::min(kChunk, m.d_in() - chunk * kChunk);
  const auto* type = kernels::block_codes_type(m.type());
  type->split(row + row_bytes(m.type(), chunk * kChunk), static_cast<int>(n), codes);
  return codes;
}

StoredWeight::Code code_at(const kernels::BlockCodes& codes, const kernels::BlockCodesType& type,
                           int64_t column) {
  const auto at = static_cast<size_t>(column % kChunk), sub = at / static_cast<size_t>(type.sub);
  return {codes.code[at], type.offset, codes.scale[sub], type.has_minimum ? codes.minimum[sub] : 0.0f};
}

double value_of(const StoredWeight::Code& c) {
  return static_cast<double>(c.scale) * (c.code - c.offset) + static_cast<double>(c.minimum);
}

std::vector<double> code_operands(const Matrix& m, int64_t row) {
  std::vector<uint8_t> stored;
  const uint8_t* bytes = m.stored_row(row, stored);
  const auto& type = *kernels::block_codes_type(m.type());
  std::vector<double> w(static_cast<size_t>(m.d_in()));
  for (int64_t chunk = 0; chunk * kChunk < m.d_in(); chunk++) {
    const kernels::BlockCodes codes = chunk_codes(m, bytes, chunk);
    for (int64_t i = chunk * kChunk; i < std::min(m.d_in(), (chunk + 1) * kChunk); i++)
      w[static_cast<size_t>(i)] = value_of(code_at(codes, type, i));
  }
  return w;
}

std::vector<double> all_rounded(std::span<const float> x) {
  std::vector<double> used(x.size());
  std::transform(x.begin(), x.end(), used.begin(), rounded);
  return used;
}

std::vector<double> weight_operands(Form form, const Matrix& m, int64_t row) {
  if (form == Form::x16 || form == Form::int8) return code_operands(m, row);
  std::vector<float> decoded(static_cast<size_t>(m.d_in()));
  std::vector<uint8_t> stored;
  m.decode_row(row, decoded.data(), stored);
  if (form == Form::fixed16) return fixed_point(decoded);
  if (form == Form::bf16) return all_rounded(decoded);
  return {decoded.begin(), decoded.end()};
}

const char* x_form(const OpContext& c, Form form) {
  switch (form) {
    case Form::x16:
    case Form::fixed16:
      return "16-bit integer · scale";
    case Form::int8:
      return "8-bit integer · scale";
    case Form::bf16:
      return c.kernels.prompt.bf16_activations ? "bf16" : "f32";
    case Form::plain:
      break;
  }
  return "f32";
}

const char* w_form(Form form) {
  switch (form) {
    case Form::x16:
    case Form::int8:
      return "code · scale + minimum";
    case Form::fixed16:
      return "16-bit integer · scale";
    case Form::bf16:
      return "bf16";
    case Form::plain:
      break;
  }
  return "f32";
}

}  // namespace

std::vector<double> activation_operands(const OpContext& c, const Matrix& m, std::span<const float> x) {
  switch (form_of(c, m)) {
    case Form::x16:
      return quantised_activations(c, x);
    case Form::fixed16:
      return fixed_point(x);
    case Form::int8:
      return in_blocks<int8_t, kernels::kInt8Block>(x, kernels::int8_block);
    case Form::bf16:
      if (c.kernels.prompt.bf16_activations) return all_rounded(x);
      break;
    case Form::plain:
      break;
  }
  return {x.begin(), x.end()};
}

ProductOperands product_operands(const OpContext& c, const Matrix& m, int64_t row, std::span<const float> x) {
  LIULI_CHECK(static_cast<int64_t>(x.size()) == m.d_in());
  const Form form = form_of(c, m);
  return {x_form(c, form), w_form(form), activation_operands(c, m, x), weight_operands(form, m, row)};
}

StoredWeight stored_weight(const Matrix& m, int64_t row, int64_t column) {
  LIULI_CHECK(column >= 0 && column < m.d_in());
  std::vector<uint8_t> file_row;
  const uint8_t* bytes = m.stored_row(row, file_row);
  const int64_t width = dtype_info(m.type()).block;
  StoredWeight w;
  w.file_row = m.file_row_index(row);
  w.block = column / width;
  w.at = column % width;
  const int64_t first = row_bytes(m.type(), w.block * width);
  for (int64_t i = first; i < row_bytes(m.type(), (w.block + 1) * width); i++)
    w.bytes += fmt::format("{:02x}", bytes[i]);
  if (const auto* type = kernels::block_codes_type(m.type()))
    w.code = code_at(chunk_codes(m, bytes, column / kChunk), *type, column);
  return w;
}

}  // namespace liuli
