// A level's weight table: scalar's, with everything replaced that has a faster form. Compiled for the baseline: it only
// stores pointers; the kernels behind them are in the folders of the instruction sets.
#pragma once
#include <array>
#include <string>

#include "kernels/weight_parts.h"

namespace liuli::kernels {

inline constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3_b128};
inline constexpr DType kQuantised[] = {
    DType::q4_0,    DType::q4_1,   DType::q5_0,  DType::q5_1,    DType::q8_0,   DType::q2_k,
    DType::q3_k,    DType::q4_k,   DType::q5_k,  DType::q6_k,    DType::iq4_nl, DType::iq4_xs,
    DType::mxfp4,   DType::nvfp4,  DType::tq1_0, DType::tq2_0,   DType::iq1_s,  DType::iq1_m,
    DType::iq2_xxs, DType::iq2_xs, DType::iq2_s, DType::iq3_xxs, DType::iq3_s};

class WeightLevel {
 public:
  using SetPart = void (*)(WeightTable&) noexcept;

  /// product: what multiplies quantised codes at this level, for the plan.
  WeightLevel(const char* product, SetPart set_decode, SetPart set_lattice, SetPart set_float)
      : table_(*weights_scalar()) {
    for (WeightKernels& w : table_.by_type)
      if (w.name) w.name = "rows, decoded by scalar code, f32 FMA";
    for (DType type : kFloats) name_fast(type, "f32 FMA");
    for (DType type : kQuantised) name_fast(type, product);
    set_decode(table_);
    set_lattice(table_);
    set_float(table_);
  }
  const WeightTable* table() const { return &table_; }

 private:
  void name_fast(DType type, const char* product) {
    const auto at = static_cast<size_t>(type);
    names_[at] = std::string(dtype_info(type).name).append(" panel, ").append(product);
    table_.by_type[at].name = names_[at].c_str();
    table_.by_type[at].fast = true;
  }

  WeightTable table_;
  std::array<std::string, kDTypeCount> names_;
};

}  // namespace liuli::kernels
