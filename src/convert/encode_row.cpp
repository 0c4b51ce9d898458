// Rows: which encoder a type has, and the weights its blocks get.
#include <algorithm>
#include <array>
#include <vector>

#include "convert/encode.h"
#include "convert/encode_blocks.h"

namespace liuli {
namespace {

encode::BlockEncoder block_encoder(DType type) {
  switch (type) {
    case DType::q4_0:
      return encode::encode_q4_0;
    case DType::q4_1:
      return encode::encode_q4_1;
    case DType::q5_0:
      return encode::encode_q5_0;
    case DType::q5_1:
      return encode::encode_q5_1;
    case DType::q8_0:
      return encode::encode_q8_0;
    case DType::q2_k:
      return encode::encode_q2_k;
    case DType::q3_k:
      return encode::encode_q3_k;
    case DType::q4_k:
      return encode::encode_q4_k;
    case DType::q5_k:
      return encode::encode_q5_k;
    case DType::q6_k:
      return encode::encode_q6_k;
    case DType::iq4_nl:
      return encode::encode_iq4_nl;
    case DType::iq4_xs:
      return encode::encode_iq4_xs;
    default:
      return nullptr;
  }
}

bool is_plain(DType type) { return type == DType::f32 || type == DType::f16 || type == DType::bf16; }

void encode_plain(DType type, const float* x, int64_t n, uint8_t* out) {
  if (type == DType::f32) {
    std::memcpy(out, x, static_cast<size_t>(n) * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < n; i++)
    encode::store_u16(out + 2 * i, type == DType::f16 ? f32_to_f16(x[i]) : f32_to_bf16(x[i]));
}

constexpr int kMaxBlock = 256;
/// No scale reaches this far (the largest f16 times 63 times 127 is 5e8), and its square times a weight is still
/// finite: sums of errors stay numbers.
constexpr float kLargest = 1e12f;

/// One weight per column, mean 1, none of them 0: a column the text never used still gets its share of what the
/// others leave over, and no sum of weights vanishes.
std::vector<float> column_weights(const float* importance, int64_t n) {
  std::vector<float> w(static_cast<size_t>(n), 1.0f);
  double sum = 0;
  for (int64_t i = 0; importance != nullptr && i < n; i++) sum += std::max(importance[i], 0.0f);
  if (!(sum > 0)) return w;
  const double inverse_mean = static_cast<double>(n) / sum;
  for (int64_t i = 0; i < n; i++)
    w[static_cast<size_t>(i)] = std::max(static_cast<float>(importance[i] * inverse_mean), 1e-6f);
  return w;
}

}  // namespace

bool can_encode(DType type) { return is_plain(type) || block_encoder(type) != nullptr; }

void encode_row(DType type, const float* x, int64_t n, const float* importance, uint8_t* out) {
  if (is_plain(type)) return encode_plain(type, x, n, out);
  const encode::BlockEncoder encode_block = block_encoder(type);
  const DTypeInfo& info = dtype_info(type);
  const std::vector<float> w = column_weights(importance, n);
  std::array<float, kMaxBlock> block;
  for (int64_t i = 0; i < n; i += info.block, out += info.bytes) {
    for (int j = 0; j < info.block; j++)
      block[static_cast<size_t>(j)] = std::clamp(x[i + j], -kLargest, kLargest);
    encode_block(block.data(), w.data() + i, out);
  }
}

}  // namespace liuli
