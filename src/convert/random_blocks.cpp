#include "convert/random_blocks.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/half.h"
#include "kernels/kernels.h"
#include "liuli/error.h"

namespace liuli {
namespace {

/// What has to be put right in a block of random bytes; the random word is the block's own.
using Correction = void (*)(uint8_t* block, uint64_t random);

struct BlockForm {
  DType type;
  int scale_at;        ///< byte of the f16 scale; −1: the type keeps it elsewhere
  int minimum_at;      ///< byte of the f16 minimum; −1: none
  double minimum;      ///< minimum = factor · scale, so that the codes' mean becomes 0
  bool either_sign;    ///< codes are not symmetric: blocks of negative scale make up for it
  Correction correct;  ///< null: any bytes will do
};

/// −128 is no code of Q8_0: encoders scale to ±127, and kernels that work on |q| rely on it.
void no_lowest_byte(uint8_t* block, uint64_t) {
  for (int i = 2; i < 34; i++)
    if (block[i] == 0x80) block[i] = 0x81;
}

/// Each 2-bit field becomes 00 or 11: with four random low bits below, a 6-bit scale minus 32 of at least 16 in size.
uint8_t far_from_zero(uint8_t byte) { return static_cast<uint8_t>((byte & 0x55) * 3); }

void q2_k_scales(uint8_t* block, uint64_t random) {
  for (int i = 0; i < 16; i++, random >>= 4) {
    const auto scale = static_cast<int>(9 + (random & 3));
    const int minimum = (random & 4) != 0 ? scale + 1 : scale - 1;
    block[i] = static_cast<uint8_t>(scale | minimum << 4);
  }
}

void q3_k_scales(uint8_t* block, uint64_t) {
  for (int i = 104; i < 108; i++) block[i] = far_from_zero(block[i]);
}

/// Eight 6-bit scales of 32 … 61 and minima within ±2 of them, packed as Q4_K and Q5_K keep them.
void q4_k_scales(uint8_t* block, uint64_t random) {
  uint8_t* s = block + 4;
  for (int g = 0; g < 8; g++, random >>= 8) {
    const auto scale = static_cast<unsigned>(34 + (random & 31) % 28);
    const auto minimum = static_cast<unsigned>(scale + (random >> 5) % 5 - 2);
    if (g < 4) {
      s[g] = static_cast<uint8_t>(scale);
      s[g + 4] = static_cast<uint8_t>(minimum);
    } else {
      s[g + 4] = static_cast<uint8_t>((scale & 15) | (minimum & 15) << 4);
      s[g - 4] = static_cast<uint8_t>(s[g - 4] | scale >> 4 << 6);
      s[g] = static_cast<uint8_t>(s[g] | minimum >> 4 << 6);
    }
  }
}

/// Signed bytes of 64 … 127 in size.
void q6_k_scales(uint8_t* block, uint64_t) {
  for (int i = 192; i < 208; i++) {
    const int size = 64 | (block[i] & 63);
    block[i] = static_cast<uint8_t>((block[i] & 0x80) != 0 ? -size : size);
  }
}

void iq4_xs_scales(uint8_t* block, uint64_t) {
  block[2] = far_from_zero(block[2]);
  block[3] = far_from_zero(block[3]);
}

/// Code 3 does not occur in ternary files; it becomes 1, which is the value 0.
void no_fourth_trit(uint8_t* block, uint64_t) {
  for (int i = 0; i < 64; i++) {
    const unsigned both = block[i] & block[i] >> 1 & 0x55u;
    block[i] = static_cast<uint8_t>(block[i] & ~(both << 1));
  }
}

constexpr BlockForm kForms[] = {
    {DType::q4_0, 0, -1, 0, true, nullptr},         {DType::q4_1, 0, 2, -7.5, false, nullptr},
    {DType::q5_0, 0, -1, 0, true, nullptr},         {DType::q5_1, 0, 2, -15.5, false, nullptr},
    {DType::q8_0, 0, -1, 0, false, no_lowest_byte}, {DType::q2_k, 80, 82, 1.5, false, q2_k_scales},
    {DType::q3_k, 108, -1, 0, false, q3_k_scales},  {DType::q4_k, 0, 2, 7.5, false, q4_k_scales},
    {DType::q5_k, 0, 2, 15.5, false, q4_k_scales},  {DType::q6_k, 208, -1, 0, false, q6_k_scales},
    {DType::iq4_nl, 0, -1, 0, true, nullptr},       {DType::iq4_xs, 0, -1, 0, false, iq4_xs_scales},
    {DType::iq1_s, 0, -1, 0, false, nullptr},       {DType::iq2_xxs, 0, -1, 0, false, nullptr},
    {DType::iq2_xs, 0, -1, 0, false, nullptr},      {DType::iq2_s, 0, -1, 0, false, nullptr},
    {DType::iq3_xxs, 0, -1, 0, false, nullptr},     {DType::iq3_s, 0, -1, 0, false, nullptr},
    {DType::tq1_0, 52, -1, 0, false, nullptr},      {DType::tq2_0, 64, -1, 0, false, no_fourth_trit},
    {DType::iq1_m, -1, -1, 0, false, nullptr},      {DType::mxfp4, -1, -1, 0, false, nullptr},
    {DType::nvfp4, -1, -1, 0, false, nullptr},
};

const BlockForm* form_of(DType type) {
  const auto* form =
      std::find_if(std::begin(kForms), std::end(kForms), [&](const auto& f) { return f.type == type; });
  return form == std::end(kForms) ? nullptr : form;
}

bool is_plain(DType type) { return type == DType::f32 || type == DType::f16 || type == DType::bf16; }

/// The value of a byte scale: MXFP4's power of two, NVFP4's unsigned E4M3.
double byte_scale(DType type, int code) {
  if (type == DType::mxfp4) return std::ldexp(1.0, code - 127);
  const int exponent = code >> 3, mantissa = code & 7;
  return exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(1 + mantissa / 8.0, exponent - 7);
}

/// A byte scale cannot be any number: of the two neighbours of `scale`, the upper one is used `share` of the time, so
/// that the mean square is right.
struct Neighbours {
  int below;
  double share;
};
Neighbours neighbours(DType type, double scale) {
  const int last = type == DType::mxfp4 ? 253 : 125;
  int code = 1;
  while (code < last && byte_scale(type, code + 1) <= scale) code++;
  const double low = std::pow(byte_scale(type, code), 2), high = std::pow(byte_scale(type, code + 1), 2);
  return {code, std::clamp((scale * scale - low) / (high - low), 0.0, 1.0)};
}

/// IQ1_M keeps the four nibbles of its f16 scale on top of its four 16-bit words of sub-scales.
void spread_scale(uint8_t* words, uint16_t scale) {
  for (int i = 0; i < 4; i++) {
    uint8_t& top = words[2 * i + 1];
    top = static_cast<uint8_t>((top & 15) | (scale >> 4 * i & 15) << 4);
  }
}

void put_f16(uint8_t* at, uint16_t value) { std::memcpy(at, &value, sizeof value); }

void fill_bytes(Rng& rng, uint8_t* out, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const uint64_t word = rng.next_u64();
    std::memcpy(out + i, &word, 8);
  }
  const uint64_t word = rng.next_u64();
  std::memcpy(out + i, &word, n - i);
}

/// Root of the mean square of what random blocks decode to with scale 1.
double measured_deviation(DType type, const RandomBlocks& blocks) {
  constexpr int64_t kBlocks = 1024;
  const DTypeInfo& info = dtype_info(type);
  std::vector<uint8_t> bytes(static_cast<size_t>(kBlocks * info.bytes));
  std::vector<float> values(static_cast<size_t>(kBlocks * info.block));
  Rng rng(1);
  blocks.fill(rng, bytes.data(), kBlocks);
  kernels::decode_row(type, bytes.data(), kBlocks * info.block, values.data());
  double sum = 0;
  for (const float v : values) sum += double{v} * double{v};
  return std::sqrt(sum / static_cast<double>(values.size()));
}

}  // namespace

RandomBlocks::RandomBlocks(DType type, double deviation) : type_(type), deviation_(deviation) {
  if (is_plain(type)) return;
  if (form_of(type) == nullptr)
    throw Error(ErrorCode::unsupported,
                fmt::format("random weights are made in F32, F16, BF16 and the quantised types, not in {}",
                            dtype_info(type).name));
  prepare_scales(1);
  prepare_scales(deviation / measured_deviation(type, *this));
}

/// Sixteen scales from 3/4 to 5/4, then the same negative where the codes are lopsided.
void RandomBlocks::prepare_scales(double scale) {
  const BlockForm& form = *form_of(type_);
  for (int i = 0; i < 2 * kSteps; i++) {
    const auto at = static_cast<size_t>(i);
    const double sign = i < kSteps || !form.either_sign ? 1 : -1;
    const double value = sign * scale * (0.75 + 0.5 * (i % kSteps) / (kSteps - 1));
    if (type_ == DType::mxfp4 || type_ == DType::nvfp4) {
      const Neighbours n = neighbours(type_, scale);
      scales_[at] = static_cast<uint16_t>(n.below + (i < std::lround(n.share * 2 * kSteps) ? 1 : 0));
    } else {
      scales_[at] = f32_to_f16(static_cast<float>(value));
      minima_[at] = f32_to_f16(static_cast<float>(form.minimum * double{f16_to_f32(scales_[at])}));
    }
  }
}

void RandomBlocks::set_scale(uint8_t* block, uint64_t random) const {
  const BlockForm& form = *form_of(type_);
  const auto step = static_cast<size_t>(random % (2 * kSteps));
  if (type_ == DType::mxfp4) {
    block[0] = static_cast<uint8_t>(scales_[step]);
  } else if (type_ == DType::nvfp4) {
    for (int i = 0; i < 4; i++, random >>= 5) block[i] = static_cast<uint8_t>(scales_[random % (2 * kSteps)]);
  } else if (type_ == DType::iq1_m) {
    spread_scale(block + 48, scales_[step]);
  } else {
    put_f16(block + form.scale_at, scales_[step]);
    if (form.minimum_at >= 0) put_f16(block + form.minimum_at, minima_[step]);
  }
}

void RandomBlocks::fill(Rng& rng, uint8_t* blocks, int64_t n) const {
  if (is_plain(type_)) return fill_plain(rng, blocks, n);
  const auto bytes = static_cast<size_t>(dtype_info(type_).bytes);
  const Correction correct = form_of(type_)->correct;
  for (int64_t i = 0; i < n; i++, blocks += bytes) {
    fill_bytes(rng, blocks, bytes);
    if (correct != nullptr) correct(blocks, rng.next_u64());
    set_scale(blocks, rng.next_u64());
  }
}

/// Four 16-bit uniforms, each of variance 2³²/12 (less a 2⁻³² part): their sum has a deviation of 2¹⁶/√3.
void RandomBlocks::fill_plain(Rng& rng, uint8_t* values, int64_t n) const {
  const double factor = deviation_ * std::sqrt(3.0) / 65536;
  const auto bytes = static_cast<size_t>(dtype_info(type_).bytes);
  for (int64_t i = 0; i < n; i++, values += bytes) {
    const uint64_t r = rng.next_u64();
    const auto sum = static_cast<int64_t>((r & 0xFFFF) + (r >> 16 & 0xFFFF) + (r >> 32 & 0xFFFF) + (r >> 48));
    const auto value = static_cast<float>(factor * static_cast<double>(sum - 2 * 65535));
    if (type_ == DType::f32) {
      std::memcpy(values, &value, sizeof value);
    } else {
      put_f16(values, type_ == DType::f16 ? f32_to_f16(value) : f32_to_bf16(value));
    }
  }
}

}  // namespace liuli
