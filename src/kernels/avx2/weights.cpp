// The weight table of this level: scalar's, with everything replaced that has a faster form.
#include "kernels/weight_parts.h"

namespace liuli::kernels {
namespace {

struct Name {
  DType type;
  const char* name;
};
constexpr Name kFast[] = {
    {DType::f32, "F32 panel, f32 FMA"},        {DType::f16, "F16 panel, f32 FMA"},
    {DType::bf16, "BF16 panel, f32 FMA"},      {DType::q4_0, "Q4_0 panel, vpmaddwd"},
    {DType::q4_1, "Q4_1 panel, vpmaddwd"},     {DType::q5_0, "Q5_0 panel, vpmaddwd"},
    {DType::q5_1, "Q5_1 panel, vpmaddwd"},     {DType::q8_0, "Q8_0 panel, vpmaddwd"},
    {DType::q2_k, "Q2_K panel, vpmaddwd"},     {DType::q3_k, "Q3_K panel, vpmaddwd"},
    {DType::q4_k, "Q4_K panel, vpmaddwd"},     {DType::q5_k, "Q5_K panel, vpmaddwd"},
    {DType::q6_k, "Q6_K panel, vpmaddwd"},     {DType::iq4_nl, "IQ4_NL panel, vpmaddwd"},
    {DType::iq4_xs, "IQ4_XS panel, vpmaddwd"},
};

WeightTable make_table() {
  WeightTable table = *weights_scalar();
  for (WeightKernels& w : table.by_type)
    if (w.name) w.name = "rows, decoded by scalar code, f32 FMA";
  for (const Name& fast : kFast) {
    table.by_type[static_cast<int>(fast.type)].name = fast.name;
    table.by_type[static_cast<int>(fast.type)].fast = true;
  }
  set_decode_avx2(table);
  set_float_avx2(table);
  return table;
}

}  // namespace

const WeightTable* weights_avx2() noexcept {
  static const WeightTable table = make_table();
  return &table;
}

}  // namespace liuli::kernels
