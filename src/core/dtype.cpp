#include "core/dtype.h"

#include <array>
#include <cctype>
#include <string>

#include "core/check.h"
#include "liuli/error.h"

namespace liuli {
namespace {

constexpr std::array<DTypeInfo, kDTypeCount> make_table() {
  std::array<DTypeInfo, kDTypeCount> t{};
  auto set = [&](DType type, const char* name, int block, int bytes) {
    t[static_cast<size_t>(type)] = {name, block, bytes};
  };
  set(DType::f32, "F32", 1, 4);
  set(DType::f16, "F16", 1, 2);
  set(DType::bf16, "BF16", 1, 2);
  set(DType::f64, "F64", 1, 8);
  set(DType::i8, "I8", 1, 1);
  set(DType::i16, "I16", 1, 2);
  set(DType::i32, "I32", 1, 4);
  set(DType::i64, "I64", 1, 8);
  set(DType::q4_0, "Q4_0", 32, 18);
  set(DType::q4_1, "Q4_1", 32, 20);
  set(DType::q5_0, "Q5_0", 32, 22);
  set(DType::q5_1, "Q5_1", 32, 24);
  set(DType::q8_0, "Q8_0", 32, 34);
  set(DType::q2_k, "Q2_K", 256, 84);
  set(DType::q3_k, "Q3_K", 256, 110);
  set(DType::q4_k, "Q4_K", 256, 144);
  set(DType::q5_k, "Q5_K", 256, 176);
  set(DType::q6_k, "Q6_K", 256, 210);
  set(DType::iq2_xxs, "IQ2_XXS", 256, 66);
  set(DType::iq2_xs, "IQ2_XS", 256, 74);
  set(DType::iq2_s, "IQ2_S", 256, 82);
  set(DType::iq3_xxs, "IQ3_XXS", 256, 98);
  set(DType::iq3_s, "IQ3_S", 256, 110);
  set(DType::iq1_s, "IQ1_S", 256, 50);
  set(DType::iq1_m, "IQ1_M", 256, 56);
  set(DType::iq4_nl, "IQ4_NL", 32, 18);
  set(DType::iq4_xs, "IQ4_XS", 256, 136);
  set(DType::tq1_0, "TQ1_0", 256, 54);
  set(DType::tq2_0, "TQ2_0", 256, 66);
  set(DType::mxfp4, "MXFP4", 32, 17);
  set(DType::nvfp4, "NVFP4", 64, 36);
  set(DType::f8_e4m3_b128, "F8_E4M3_B128", 128, 132);
  return t;
}
constexpr std::array<DTypeInfo, kDTypeCount> kTable = make_table();

}  // namespace

const DTypeInfo& dtype_info(DType type) {
  const auto& info = kTable[static_cast<size_t>(type)];
  LIULI_CHECK(info.name != nullptr);
  return info;
}

std::optional<DType> dtype_from_gguf(uint32_t id) {
  return id < kGgufTypes ? dtype_at(static_cast<int>(id)) : std::nullopt;
}

std::optional<DType> dtype_at(int index) {
  if (index < 0 || index >= kDTypeCount || kTable[static_cast<size_t>(index)].name == nullptr)
    return std::nullopt;
  return static_cast<DType>(index);
}

std::optional<DType> dtype_from_name(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (size_t i = 0; i < kTable.size(); i++)
    if (kTable[i].name != nullptr && upper == kTable[i].name) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace liuli
