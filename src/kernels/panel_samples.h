// For tests and benchmarks: random but sane file rows of any stored type, and panels of them.
#pragma once
#include <cstring>
#include <random>
#include <vector>

#include "core/half.h"
#include "kernels/kernels.h"

namespace liuli::kernels {

/// Types that exist, in the order of their ids.
inline std::vector<DType> all_types() {
  std::vector<DType> types;
  for (int id = 0; id < kDTypeCount; id++)
    if (const auto type = dtype_at(id)) types.push_back(*type);
  return types;
}

/// Bytes with an alignment that kernels may rely on.
class AlignedBytes {
 public:
  explicit AlignedBytes(size_t n) : storage_(n + 64) {}
  uint8_t* data() { return storage_.data() + (64 - reinterpret_cast<uintptr_t>(storage_.data()) % 64) % 64; }

 private:
  std::vector<uint8_t> storage_;
};

/// Makes the scales of a block of random bytes finite and small; codes stay random.
inline void make_sane(DType type, uint8_t* block, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-0.02f, 0.02f);
  const auto half = [&](int offset) {
    const uint16_t bits = f32_to_f16(uniform(random));
    std::memcpy(block + offset, &bits, 2);
  };
  const float plain = std::normal_distribution<float>()(random);
  switch (type) {
    case DType::f32:
      std::memcpy(block, &plain, 4);
      break;
    case DType::f64: {
      const double d = plain;
      std::memcpy(block, &d, 8);
      break;
    }
    case DType::f16: {
      const uint16_t h = f32_to_f16(plain);
      std::memcpy(block, &h, 2);
      break;
    }
    case DType::bf16: {
      const uint16_t h = f32_to_bf16(plain);
      std::memcpy(block, &h, 2);
      break;
    }
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
      break;
    case DType::q4_1:
    case DType::q5_1:
    case DType::q4_k:
    case DType::q5_k:
      half(0);
      half(2);
      break;
    case DType::q2_k:
      half(80);
      half(82);
      break;
    case DType::q3_k:
      half(108);
      break;
    case DType::q6_k:
      half(208);
      break;
    case DType::tq1_0:
      half(52);
      break;
    case DType::tq2_0:
      half(64);
      break;
    case DType::iq1_m:
      block[55] = (block[55] & 0x0f) | 0x20;
      break;  // the top digit of a scattered f16
    case DType::mxfp4:
      block[0] = static_cast<uint8_t>(110 + block[0] % 16);
      break;
    case DType::nvfp4:
      for (int i = 0; i < 4; i++) block[i] &= 0x3f;
      break;
    case DType::f8_e4m3_b128: {
      const float scale = uniform(random);
      std::memcpy(block, &scale, 4);
      for (int i = 4; i < 132; i++)
        if ((block[i] & 0x7F) == 0x7F) block[i] ^= 1;  // NaN
      break;
    }
    default:
      half(0);
  }
}

/// n_rows file rows of k columns.
inline std::vector<uint8_t> random_rows(DType type, int64_t n_rows, int64_t k, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> rows(static_cast<size_t>(n_rows * row_bytes(type, k)));
  for (uint8_t& byte : rows) byte = static_cast<uint8_t>(random());
  const size_t bytes = static_cast<size_t>(dtype_info(type).bytes);
  for (size_t i = 0; i < rows.size(); i += bytes) make_sane(type, &rows[i], random);
  return rows;
}

/// Packs up to 16 rows into a zeroed panel.
inline void pack_panel(DType type, const uint8_t* rows, int n_rows, int64_t k, uint8_t* panel) {
  const PanelLayout& layout = panel_layout(type);
  std::memset(panel, 0, layout.bytes(k));
  for (int lane = 0; lane < n_rows; lane++) layout.pack_row(rows + lane * row_bytes(type, k), panel, lane, k);
}

}  // namespace liuli::kernels
