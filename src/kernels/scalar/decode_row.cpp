// The decoder of each stored type.
#include <array>

#include "core/dtype.h"
#include "kernels/kernels.h"
#include "kernels/scalar/decode_blocks.h"

namespace liuli::kernels {
namespace {

constexpr std::array<DecodeFunction, kDTypeCount> make_table() {
  std::array<DecodeFunction, kDTypeCount> t{};
  const auto set = [&](DType type, DecodeFunction decode) { t[static_cast<size_t>(type)] = decode; };
  set(DType::f32, decode_f32);
  set(DType::f16, decode_f16);
  set(DType::bf16, decode_bf16);
  set(DType::f64, decode_f64);
  set(DType::i8, decode_i8);
  set(DType::i16, decode_i16);
  set(DType::i32, decode_i32);
  set(DType::i64, decode_i64);
  set(DType::q4_0, decode_q4_0);
  set(DType::q4_1, decode_q4_1);
  set(DType::q5_0, decode_q5_0);
  set(DType::q5_1, decode_q5_1);
  set(DType::q8_0, decode_q8_0);
  set(DType::q2_k, decode_q2_k);
  set(DType::q3_k, decode_q3_k);
  set(DType::q4_k, decode_q4_k);
  set(DType::q5_k, decode_q5_k);
  set(DType::q6_k, decode_q6_k);
  set(DType::iq1_s, decode_iq1_s);
  set(DType::iq1_m, decode_iq1_m);
  set(DType::iq2_xxs, decode_iq2_xxs);
  set(DType::iq2_xs, decode_iq2_xs);
  set(DType::iq2_s, decode_iq2_s);
  set(DType::iq3_xxs, decode_iq3_xxs);
  set(DType::iq3_s, decode_iq3_s);
  set(DType::iq4_nl, decode_iq4_nl);
  set(DType::iq4_xs, decode_iq4_xs);
  set(DType::tq1_0, decode_tq1_0);
  set(DType::tq2_0, decode_tq2_0);
  set(DType::mxfp4, decode_mxfp4);
  set(DType::nvfp4, decode_nvfp4);
  set(DType::f8_e4m3_b128, decode_f8_e4m3_b128);
  return t;
}
constexpr std::array<DecodeFunction, kDTypeCount> kDecoders = make_table();

}  // namespace

void decode_row(DType type, const uint8_t* row, int64_t n, float* out) noexcept {
  kDecoders[static_cast<size_t>(type)](row, n, out);
}

}  // namespace liuli::kernels
