#include "ops/product_operands.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/check.h"
#include "core/half.h"
#include "kernels/scalar/block_codes.h"
#include "kernels/scalar/fixed16.h"

namespace liuli {
namespace {

using kernels::ActivationChunk;

constexpr int64_t kChunk = 256;

bool multiplies_codes(const OpContext& c, const Matrix& m) {
  return c.product_class == ProductClass::decode &&
         c.kernels.weights[static_cast<size_t>(m.type())].integer_decode;
}

bool multiplies_fixed_point(const OpContext& c, const Matrix& m) {
  return c.product_class == ProductClass::prompt &&
         c.kernels.weights[static_cast<size_t>(m.type())].expand_fixed16 != nullptr;
}

// scale · q of every block of 64.
std::vector<double> fixed_point(std::span<const float> x) {
  std::vector<double> used(x.size());
  for (size_t at = 0; at < x.size(); at += kernels::kFixedBlock) {
    const size_t n = std::min<size_t>(kernels::kFixedBlock, x.size() - at);
    int16_t q[kernels::kFixedBlock];
    const float scale = kernels::fixed16_block(x.data() + at, static_cast<int>(n), q);
    for (size_t i = 0; i < n; i++) used[at + i] = static_cast<double>(scale) * q[i];
  }
  return used;
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

std::vector<double> weight_operands(const OpContext& c, const Matrix& m, int64_t row) {
  if (multiplies_codes(c, m)) return code_operands(m, row);
  std::vector<float> decoded(static_cast<size_t>(m.d_in()));
  std::vector<uint8_t> stored;
  m.decode_row(row, decoded.data(), stored);
  if (c.product_class != ProductClass::prompt) return {decoded.begin(), decoded.end()};
  if (multiplies_fixed_point(c, m)) return fixed_point(decoded);
  std::vector<double> w(decoded.size());
  std::transform(decoded.begin(), decoded.end(), w.begin(), rounded);
  return w;
}

}  // namespace

std::vector<double> activation_operands(const OpContext& c, const Matrix& m, std::span<const float> x) {
  if (multiplies_codes(c, m)) return quantised_activations(c, x);
  if (multiplies_fixed_point(c, m)) return fixed_point(x);
  if (c.product_class != ProductClass::prompt || !c.kernels.prompt.bf16_activations)
    return {x.begin(), x.end()};
  std::vector<double> used(x.size());
  std::transform(x.begin(), x.end(), used.begin(), rounded);
  return used;
}

ProductOperands product_operands(const OpContext& c, const Matrix& m, int64_t row, std::span<const float> x) {
  LIULI_CHECK(static_cast<int64_t>(x.size()) == m.d_in());
  const bool prompt = c.product_class == ProductClass::prompt, codes = multiplies_codes(c, m);
  const bool fixed = multiplies_fixed_point(c, m);
  return {codes || fixed                                ? "16-bit integer · scale"
          : prompt && c.kernels.prompt.bf16_activations ? "bf16"
                                                        : "f32",
          codes    ? "code · scale + minimum"
          : fixed  ? "16-bit integer · scale"
          : prompt ? "bf16"
                   : "f32",
          activation_operands(c, m, x), weight_operands(c, m, row)};
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
