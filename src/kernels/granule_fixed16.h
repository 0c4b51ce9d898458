// Every type's weights in 16-bit fixed point, for levels without bf16 products: a product of pairs of 16-bit integers does
// twice the work of an f32 FMA (vpmaddwd, vpdpwssd). Included only by ISA files, after granule_float.h.
#pragma once
#include "kernels/granule_float.h"

namespace liuli::kernels {
namespace {

// Columns [from, to) of a decoded chunk that lie beyond k.
LIULI_INLINE void clear_columns(float (*w)[kPanelRows], int from, int to) {
  for (int i = from; i < to; i++) Vec::store(w[i], Vec::zero_f32());
}

__attribute__((noipa)) void chunked_expand_fixed16(DecodeGroups decode, const uint8_t* panel, int64_t k,
                                                   int64_t k_begin, int64_t k_end, int16_t* lines) {
  alignas(64) DecodedChunk w;
  for (int64_t at = k_begin; at < k_end;) {
    const int64_t chunk = at / kChunk, chunk_end = (chunk + 1) * kChunk,
                  end = k_end < chunk_end ? k_end : chunk_end;
    const int begin = static_cast<int>(at % kChunk / 32),
              last = static_cast<int>((end - chunk * kChunk) / 32);
    const int groups = groups_in_chunk(k, chunk), present = groups < last ? groups : last;
    if (begin < present) decode(panel, k, chunk, begin, present, w);
    clear_columns(w, 32 * (present > begin ? present - begin : 0), 32 * (last - begin));
    lines = fixed16_all(w, static_cast<int>(end - at) / kFixedBlock, lines);
    at = end;
  }
}

template <DecodeGroups decode>
void set_fixed16(WeightKernels& w) {
  w.expand_fixed16 = [](const uint8_t* panel, int64_t k, int64_t k_begin, int64_t k_end,
                        int16_t* lines) noexcept {
    chunked_expand_fixed16(decode, panel, k, k_begin, k_end, lines);
  };
}

/// All types but FP8, whose decoder goes straight to bf16 tiles.
void set_fixed16_kernels(WeightTable& table) {
  const auto entry = [&](DType type) -> WeightKernels& { return table.by_type[static_cast<int>(type)]; };
  entry(DType::f32).expand_fixed16 = plain_expand_fixed16<PlainF32>;
  entry(DType::bf16).expand_fixed16 = plain_expand_fixed16<PlainBf16>;
  for_each_granule_type([&](auto t) {
    using T = decltype(t);
    set_fixed16<decode_granules<T>>(entry(T::kType));
  });
  for_each_lattice_type([&](auto t) {
    using T = decltype(t);
    set_fixed16<decode_points<T>>(entry(T::kType));
  });
}

}  // namespace
}  // namespace liuli::kernels
