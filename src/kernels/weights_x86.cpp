// The weight tables of the x86 levels.
#include "kernels/weight_level.h"
#include "kernels/weights_bf16.h"

namespace liuli::kernels {
namespace {
void set_others_avx2(WeightTable& table) noexcept {
  set_float_avx2(table);
  set_expand_int8_avx2(table);
}
}  // namespace

const WeightTable* weights_avx2() noexcept {
  static const WeightLevel level("vpmaddubsw", set_decode_avx2, set_lattice_avx2, set_others_avx2);
  return level.table();
}

const WeightTable* weights_avxvnni() noexcept {
  static const WeightLevel level("256-bit VNNI", set_decode_avxvnni, set_lattice_avxvnni, set_others_avx2);
  return level.table();
}

const WeightTable* weights_avx512() noexcept {
  static const WeightLevel level("VNNI", set_decode_avx512, set_lattice_avx512, [](WeightTable& t) noexcept {
    set_float_avx512(t);
    set_expand_fixed16_avx512(t);
    set_expand_int8_avx512(t);
  });
  return level.table();
}

const WeightTable* weights_avx512_bf16() noexcept {
  static const WeightTable table = [] {
    WeightTable t = *weights_avx512();
    // bf16 products do as many columns at once; only F16 is worth more bits than they keep.
    for (WeightKernels& w : t.by_type) {
      if (&w != &t.by_type[static_cast<int>(DType::f16)]) w.expand_fixed16 = nullptr;
    }
    set_expand_avx512_bf16(t);
    return t;
  }();
  return &table;
}

}  // namespace liuli::kernels
