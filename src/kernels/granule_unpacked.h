// A chunk's codes, scales and minima in L1, for several rows of activations or several uses. Included only by ISA files.
#pragma once
#include "kernels/granule_lattices.h"
#include "kernels/granule_types.h"

namespace liuli::kernels {
namespace {

/// Types whose codes are looked up a group at a time (granule_lattices.h).
template <class T>
constexpr bool kLattice = requires {
  T::kLattice;
};

template <class T>
struct Unpacked {
  static constexpr int kSubs = kChunk / T::kSub, kQuads = T::kSub / 4;
  alignas(64) uint8_t codes[64][4 * Vec::kLanes];  // by four columns
  alignas(64) float scale[kSubs][Vec::kLanes], minimum[kSubs][Vec::kLanes];
};

template <class T>
LIULI_INLINE void unpack_codes(const At& at, int groups, Unpacked<T>& out) {
  const typename T::Scales scales = T::scales(at);
  unroll<0, 8>([&](auto group) __attribute__((always_inline)) {
    constexpr int g = decltype(group)::value, per_group = 32 / T::kSub;
    if (g >= groups) return;
    unroll<0, 8>([&](auto quad) __attribute__((always_inline)) {
      constexpr int j = decltype(quad)::value;
      Vec::store(out.codes[8 * g + j], T::template code<g, j>(at));
    });
    unroll<g * per_group, (g + 1) * per_group>([&](auto sub) __attribute__((always_inline)) {
      constexpr int i = decltype(sub)::value;
      Vec::store(out.scale[i], T::template scale<i>(scales, at));
      if constexpr (T::kMinimum) Vec::store(out.minimum[i], T::template minimum<i>(scales, at));
    });
  });
}

template <class T>
LIULI_INLINE void unpack(const At& at, int groups, Unpacked<T>& out) {
  if constexpr (kLattice<T>)
    unpack_points<T>(at, 0, groups, out);
  else
    unpack_codes<T>(at, groups, out);
}

}  // namespace
}  // namespace liuli::kernels
