// Codes and scales as the 8-bit prompt product wants them (int8_blocks.h), over the lanes of `Vec`. Included only by ISA
// files, after their vector.h.
#pragma once
#include "kernels/granule_list.h"
#include "kernels/granule_unpacked.h"
#include "kernels/int8_blocks.h"
#include "kernels/weight_parts.h"

namespace liuli::kernels {
namespace {

template <class T>
LIULI_INLINE Vec::I without_offset(Vec::I code) {
  if constexpr (T::kOffset < 0)
    return code;
  else
    return Vec::subtract_bytes(code, Vec::bytes((1 << T::kOffset) >> code_shift<T>(0)));
}

LIULI_INLINE float* floats_at(int8_t* lane, int line) { return reinterpret_cast<float*>(lane + line); }

// One scale's columns of a block: `part` 0, or the halves 0 and 1. code(Index<j>): quad j.
template <class T, int part, class Code>
LIULI_INLINE void put_part(int8_t* lane, Vec::F scale, Vec::F minimum, Code&& code) {
  constexpr int quads = T::kSub / 4, line = part * kInt8Line;
  Vec::I sum = Vec::zero();
  unroll<part * quads, (part + 1) * quads>([&](auto quad) __attribute__((always_inline)) {
    const Vec::I c = without_offset<T>(code(quad));
    Vec::store(lane + decltype(quad)::value * kInt8Line, c);
    sum = Vec::add_128_times_bytes(sum, c);
  });
  Vec::store(lane + kInt8Starts + line, Vec::add(Vec::bxor(sum, Vec::words(-1)), Vec::words(1)));  // −sum
  Vec::store(floats_at(lane, kInt8Scales + line), scale);
  if constexpr (T::kMinimum) Vec::store(floats_at(lane, kInt8Minima + line), minimum);
}

template <class T, int g>
LIULI_INLINE void put_group(const typename T::Scales& scales, const At& at, int8_t* block) {
  constexpr int parts = kInt8Block / T::kSub, shift = code_shift<T>(g);
  unroll<0, parts>([&](auto part_index) __attribute__((always_inline)) {
    constexpr int part = decltype(part_index)::value, sub = parts * g + part;
    Vec::F scale = T::template scale<sub>(scales, at), minimum = Vec::zero_f32();
    if constexpr (shift > 0) scale = Vec::mul(scale, Vec::set(1 << shift));
    if constexpr (T::kMinimum) minimum = T::template minimum<sub>(scales, at);
    put_part<T, part>(
        block, scale, minimum, [&](auto quad) __attribute__((always_inline)) {
          return Vec::shift<shift>(T::template code<g, decltype(quad)::value>(at));
        });
  });
}

// Groups [begin, end) of a chunk.
template <class T>
LIULI_INLINE void put_codes(const At& at, const uint8_t* next, int begin, int end, int8_t* blocks) {
  const typename T::Scales scales = T::scales(at);
  unroll<0, 8>([&](auto group) __attribute__((always_inline)) {
    constexpr int g = decltype(group)::value;
    if (g < begin || g >= end) return;
    prefetch_panel_behind<T>(next, g);
    put_group<T, g>(scales, at, blocks + (g - begin) * kInt8Bytes);
  });
}

template <class T>
LIULI_INLINE void put_points(const At& at, int begin, int end, int8_t* blocks) {
  Unpacked<T> w;
  unpack_points<T>(at, begin, end, w);
  for (int g = begin; g < end; g++, blocks += kInt8Bytes) {
    constexpr int parts = kInt8Block / T::kSub;
    unroll<0, parts>([&](auto part_index) __attribute__((always_inline)) {
      constexpr int part = decltype(part_index)::value;
      put_part<T, part>(
          blocks, Vec::load_f32(w.scale[parts * g + part]),
          Vec::zero_f32(), [&](auto quad) __attribute__((always_inline)) {
            return Vec::load(w.codes[8 * g + decltype(quad)::value]);
          });
    });
  }
}

template <class T>
void expand_codes(const uint8_t* panel, int64_t k, int64_t k_begin, int64_t k_end, int8_t* blocks) noexcept {
  const int64_t stride = panel_stride<T>(k);
  const int64_t present = k_end < k ? k_end : k;
  int64_t column = k_begin;
  while (column < present) {
    const int64_t chunk = column / kChunk, first = chunk * kChunk;
    const int64_t end = present < first + kChunk ? present : first + kChunk;
    const int begin_group = static_cast<int>((column - first) / 32),
              end_group = static_cast<int>((end - first + 31) / 32);
    const At at = chunk_at<T>(panel, chunk);
    if constexpr (kLattice<T>)
      put_points<T>(at, begin_group, end_group, blocks);
    else
      put_codes<T>(at, at.body + stride, begin_group, end_group, blocks);
    blocks += (end_group - begin_group) * kInt8Bytes;
    column = first + 32 * end_group;
  }
  if (column < k_end) __builtin_memset(blocks, 0, static_cast<size_t>((k_end - column) / 32) * kInt8Bytes);
}

/// For for_each_granule_type() and for_each_lattice_type(): each type's expansion into its place of the table.
struct SetExpandCodes {
  WeightTable& table;
  template <class T>
  void operator()(T) const {
    table.by_type[static_cast<int>(T::kType)].expand_codes = expand_codes<T>;
  }
};

}  // namespace
}  // namespace liuli::kernels
