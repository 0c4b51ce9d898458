// Sixteen lanes from narrower registers: a pair of anything that has the operations of a vector.h, and has them itself.
// Twice<eight lanes> is AVX2's Vec, Twice<Twice<four lanes>> NEON's. Included only by vector.h files.
//
// So all levels take a panel's sixteen rows at once: a line of a panel is touched once, a broadcast of activations serves all
// of its lanes. (Two passes of eight lanes: Q4_K 16.1 GiB/s of one core, one of sixteen: 20.9; AVX2 on Zen 4.)
#pragma once
#include "kernels/kernels.h"

namespace liuli::kernels {
namespace {

template <class Half>
struct Twice {
  static constexpr int kLanes = 2 * Half::kLanes;
  struct I {
    typename Half::I low, high;
  };
  struct F {
    typename Half::F low, high;
  };
  struct Sum {
    typename Half::Sum low, high;
  };

  LIULI_INLINE I load(const void* p) { return {Half::load(p), Half::load(at(p, 4))}; }
  LIULI_INLINE F load_f32(const float* p) { return {Half::load_f32(p), Half::load_f32(p + Half::kLanes)}; }
  LIULI_INLINE F load_half(const void* p) { return {Half::load_half(p), Half::load_half(at(p, 2))}; }
  LIULI_INLINE I load_u16(const void* p) { return {Half::load_u16(p), Half::load_u16(at(p, 2))}; }
  LIULI_INLINE I load_u8(const void* p) { return {Half::load_u8(p), Half::load_u8(at(p, 1))}; }
  template <bool odd>
  LIULI_INLINE F half_of_pair(const void* p) {
    return {Half::template half_of_pair<odd>(p), Half::template half_of_pair<odd>(at(p, 4))};
  }
  template <bool odd>
  LIULI_INLINE F bf16_of_pair(const void* p) {
    return {Half::template bf16_of_pair<odd>(p), Half::template bf16_of_pair<odd>(at(p, 4))};
  }
  LIULI_INLINE void store(void* p, I v) {
    Half::store(p, v.low);
    Half::store(static_cast<uint8_t*>(p) + 4 * Half::kLanes, v.high);
  }
  LIULI_INLINE void store(float* p, F v) {
    Half::store(p, v.low);
    Half::store(p + Half::kLanes, v.high);
  }

  LIULI_INLINE I zero() { return {Half::zero(), Half::zero()}; }
  LIULI_INLINE F zero_f32() { return {Half::zero_f32(), Half::zero_f32()}; }
  LIULI_INLINE I bytes(int value) { return {Half::bytes(value), Half::bytes(value)}; }
  LIULI_INLINE I words(int value) { return {Half::words(value), Half::words(value)}; }
  LIULI_INLINE F set(float value) { return {Half::set(value), Half::set(value)}; }

  template <int S>
  LIULI_INLINE I shift(I v) {
    return {Half::template shift<S>(v.low), Half::template shift<S>(v.high)};
  }
  template <int S>
  LIULI_INLINE I signed_shift(I v) {
    return {Half::template signed_shift<S>(v.low), Half::template signed_shift<S>(v.high)};
  }
  LIULI_INLINE I shift_by(I v, int n) { return {Half::shift_by(v.low, n), Half::shift_by(v.high, n)}; }
  LIULI_INLINE I band(I a, I b) { return {Half::band(a.low, b.low), Half::band(a.high, b.high)}; }
  LIULI_INLINE I bor(I a, I b) { return {Half::bor(a.low, b.low), Half::bor(a.high, b.high)}; }
  LIULI_INLINE I bxor(I a, I b) { return {Half::bxor(a.low, b.low), Half::bxor(a.high, b.high)}; }
  LIULI_INLINE I or_and(I a, I b, I mask) {
    return {Half::or_and(a.low, b.low, mask.low), Half::or_and(a.high, b.high, mask.high)};
  }
  LIULI_INLINE I add(I a, I b) { return {Half::add(a.low, b.low), Half::add(a.high, b.high)}; }
  LIULI_INLINE I add_bytes(I a, I b) {
    return {Half::add_bytes(a.low, b.low), Half::add_bytes(a.high, b.high)};
  }
  LIULI_INLINE I subtract_bytes(I a, I b) {
    return {Half::subtract_bytes(a.low, b.low), Half::subtract_bytes(a.high, b.high)};
  }
  template <int M>
  LIULI_INLINE I multiply_bytes(I v) {
    return {Half::template multiply_bytes<M>(v.low), Half::template multiply_bytes<M>(v.high)};
  }
  LIULI_INLINE I thirds64(I v) { return {Half::thirds64(v.low), Half::thirds64(v.high)}; }
  LIULI_INLINE bool any(I v) { return Half::any(v.low) || Half::any(v.high); }
  LIULI_INLINE I top_bit(I v) { return {Half::top_bit(v.low), Half::top_bit(v.high)}; }
  LIULI_INLINE I if_less(I a, I b, I then, I otherwise) {
    return {Half::if_less(a.low, b.low, then.low, otherwise.low),
            Half::if_less(a.high, b.high, then.high, otherwise.high)};
  }
  LIULI_INLINE I if_equal(I a, I b, I then, I otherwise) {
    return {Half::if_equal(a.low, b.low, then.low, otherwise.low),
            Half::if_equal(a.high, b.high, then.high, otherwise.high)};
  }
  template <int P, int first>
  LIULI_INLINE I with_signs(I code, I signs) {
    return {Half::template with_signs<P, first>(code.low, signs.low),
            Half::template with_signs<P, first>(code.high, signs.high)};
  }
  static constexpr bool kLooksUpWords = false;  ///< no permutation of words by words
  /// Entry index[2 · lane] of a table of quads, or of pairs of quads, for every lane.
  template <class Word, int n>
  LIULI_INLINE void gather(const Word* table, const uint16_t* index, I (&quads)[n]) {
    typename Half::I low[n], high[n];
    Half::gather(table, index, low);
    Half::gather(table, index + 2 * Half::kLanes, high);
    for (int i = 0; i < n; i++) quads[i] = {low[i], high[i]};
  }
  LIULI_INLINE I lookup(const uint8_t* table16, I index) {
    return {Half::lookup(table16, index.low), Half::lookup(table16, index.high)};
  }

  LIULI_INLINE I as_words(F v) { return {Half::as_words(v.low), Half::as_words(v.high)}; }
  LIULI_INLINE F as_f32(I v) { return {Half::as_f32(v.low), Half::as_f32(v.high)}; }
  LIULI_INLINE F to_f32(I v) { return {Half::to_f32(v.low), Half::to_f32(v.high)}; }
  LIULI_INLINE F half_of_word(I v) { return {Half::half_of_word(v.low), Half::half_of_word(v.high)}; }
  template <int J>
  LIULI_INLINE F unsigned_byte(I v) {
    return {Half::template unsigned_byte<J>(v.low), Half::template unsigned_byte<J>(v.high)};
  }
  template <int J>
  LIULI_INLINE F signed_byte(I v) {
    return {Half::template signed_byte<J>(v.low), Half::template signed_byte<J>(v.high)};
  }
  LIULI_INLINE F add(F a, F b) { return {Half::add(a.low, b.low), Half::add(a.high, b.high)}; }
  LIULI_INLINE F sub(F a, F b) { return {Half::sub(a.low, b.low), Half::sub(a.high, b.high)}; }
  LIULI_INLINE F mul(F a, F b) { return {Half::mul(a.low, b.low), Half::mul(a.high, b.high)}; }
  LIULI_INLINE F div(F a, F b) { return {Half::div(a.low, b.low), Half::div(a.high, b.high)}; }
  LIULI_INLINE F fma(F a, F b, F c) {
    return {Half::fma(a.low, b.low, c.low), Half::fma(a.high, b.high, c.high)};
  }
  LIULI_INLINE F sqrt(F a) { return {Half::sqrt(a.low), Half::sqrt(a.high)}; }
  LIULI_INLINE F larger(F a, F b) { return {Half::larger(a.low, b.low), Half::larger(a.high, b.high)}; }
  LIULI_INLINE F larger_magnitude(F a, F b) {
    return {Half::larger_magnitude(a.low, b.low), Half::larger_magnitude(a.high, b.high)};
  }
  LIULI_INLINE F drop_below(F v, float least) {
    return {Half::drop_below(v.low, least), Half::drop_below(v.high, least)};
  }
  LIULI_INLINE I pair_of_int16(F even, F odd) {
    return {Half::pair_of_int16(even.low, odd.low), Half::pair_of_int16(even.high, odd.high)};
  }
  LIULI_INLINE I pair_of_bf16(F even, F odd) {
    return {Half::pair_of_bf16(even.low, odd.low), Half::pair_of_bf16(even.high, odd.high)};
  }
  LIULI_INLINE I add_128_times_bytes(I sum, I v) {
    return {Half::add_128_times_bytes(sum.low, v.low), Half::add_128_times_bytes(sum.high, v.high)};
  }

  LIULI_INLINE Sum start(int32_t negative_sum, int offset) {
    return {Half::start(negative_sum, offset), Half::start(negative_sum, offset)};
  }
  template <int bits, int j, int n>
  LIULI_INLINE void dot(Sum& sum, I code, const ActivationChunk& act, int column) {
    Half::template dot<bits, j, n>(sum.low, code.low, act, column);
    Half::template dot<bits, j, n>(sum.high, code.high, act, column);
  }
  LIULI_INLINE I finish(const Sum& sum) { return {Half::finish(sum.low), Half::finish(sum.high)}; }

 private:
  /// The upper half's place, `bytes` per lane.
  LIULI_INLINE const void* at(const void* p, int bytes) {
    return static_cast<const uint8_t*>(p) + bytes * Half::kLanes;
  }
};

}  // namespace
}  // namespace liuli::kernels
