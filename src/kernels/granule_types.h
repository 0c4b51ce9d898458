// Each granule type in its pieces, over the sixteen lanes of a panel (`Vec`): codes, scales, minima of a chunk.
// Included only by ISA files, after their vector.h; everything has internal linkage. panels.h holds the
// layouts.
//
//   kType  kSub     the stored type; columns per scale (32 or 16)
//   kBits           codes are below 2^kBits
//   kOffset         log2 of the offset taken off a code, or −1
//   kMinimum        weight = scale · (code − offset) [+ minimum]
//   kFetchAhead     decoding one row, whether it asks for lines ahead (granule_decode.h)
//   kColumns        columns of a block: a row may end after any
//   kBytes          bytes of a chunk of 256 columns
//   kPaired         d, 32 bytes more, shares a line in front of two chunks with the other's; else a chunk lies by itself
//   Scales, scales(at)         what a chunk's scales have in common, unpacked once
//   scale<i>, minimum<i>       of sub-block i, with the arithmetic of decode_row: products rounded once,
//                              never fused
//   code<g, j>                 four unsigned codes per lane: columns 32 g + 4 j …
//   code_shift(g)   where codes come shifted to the left, and scales divided by as much: by how many bits
#pragma once
#include <cstdint>

#include "kernels/panels.h"

namespace liuli::kernels {
namespace {

static_assert(Vec::kLanes == kPanelRows);

/// Rows that meet a register of weights at once, each with one sum or two: as many as the registers have room for, at most 8.
template <bool split>
constexpr int kRowsOfSums = Vec::kSums / (split ? 2 : 1) < 8 ? Vec::kSums / (split ? 2 : 1) : 8;

/// A chunk of a panel.
struct At {
  const uint8_t* body;
  const uint8_t* d;  // of paired chunks
  __attribute__((always_inline)) Vec::I line(int offset) const { return Vec::load(body + offset); }
  __attribute__((always_inline)) Vec::F half(int offset) const { return Vec::load_half(body + offset); }
  __attribute__((always_inline)) Vec::I byte(int offset) const { return Vec::load_u8(body + offset); }
  __attribute__((always_inline)) Vec::F paired_half() const { return Vec::load_half(d); }
};

/// Chunk `chunk` of a panel; of paired chunks two follow the line of their d's.
template <class T>
LIULI_INLINE At chunk_at(const uint8_t* panel, int64_t chunk) {
  if constexpr (!T::kPaired) return {panel + chunk * T::kBytes, nullptr};
  const uint8_t* d = panel + chunk / 2 * (2 * T::kBytes + 64);
  return {d + 64 + chunk % 2 * T::kBytes, d + chunk % 2 * 32};
}

/// Bits by which the codes of group g lie higher than their value.
template <class T>
constexpr int code_shift(int g) {
  if constexpr (requires { T::code_shift(g); })
    return T::code_shift(g);
  else
    return 0;
}

/// Bytes from one panel to the next, to within a line (for fetching ahead).
template <class T>
LIULI_INLINE int64_t panel_stride(int64_t k) {
  if constexpr (!T::kPaired) return k * T::kBytes / kChunk;
  return k / kChunk * T::kBytes + (k / kChunk + 1) / 2 * 64;
}

/// Group g's share of the panel behind, which is expanded next: panels lie too far apart for stream prefetchers. (Fetching
/// this panel's next columns instead fills L2 while the tiles need it.)
template <class T>
LIULI_INLINE void prefetch_panel_behind(const uint8_t* next, int g) {
  constexpr int lines = T::kBytes / 64;
  for (int l = lines * g / 8; l < lines * (g + 1) / 8; l++) __builtin_prefetch(next + 64 * l, 0, 3);
}

LIULI_INLINE Vec::I low_nibbles(Vec::I v) { return Vec::band(v, Vec::bytes(15)); }
LIULI_INLINE Vec::F minus(Vec::F v) { return Vec::mul(v, Vec::set(-1.0f)); }

// ---- super-blocks ---------------------------------------------------------------------------------------

template <bool five>
struct Q45K {
  static constexpr DType kType = five ? DType::q5_k : DType::q4_k;
  static constexpr int kSub = 32, kBits = five ? 5 : 4, kOffset = -1, kBytes = five ? 2816 : 2304;
  static constexpr bool kMinimum = true, kPaired = false, kFetchAhead = false;
  static constexpr int kColumns = kChunk;
  // A line of top bits stands before each of the first eight of codes, which are needed with it.
  static constexpr int codes_at(int pair, int j) {
    return five && pair == 0 ? 320 + 128 * j : 256 + 512 * five + 64 * (8 * pair + j);
  }

  struct Scales {
    Vec::F d, minus_dmin;
    Vec::I scale[2], minimum[2];  // 6 bits each, groups 0…3 and 4…7
  };
  // Bytes 0…3 of the twelve hold six bits of scales 0…3 and the two top bits of scales 4…7, bytes 4…7 the
  // same of the minima, bytes 8…11 the lower nibbles of both.
  LIULI_INLINE Scales scales(const At& at) {
    const Vec::I a = at.line(64), b = at.line(128), c = at.line(192), six = Vec::bytes(63),
                 top = Vec::bytes(0x30);
    return {at.half(0),
            minus(at.half(32)),
            {Vec::band(a, six), Vec::or_and(low_nibbles(c), Vec::shift<2>(a), top)},
            {Vec::band(b, six), Vec::or_and(low_nibbles(Vec::shift<4>(c)), Vec::shift<2>(b), top)}};
  }
  template <int i>
  LIULI_INLINE Vec::F scale(const Scales& s, const At&) {
    return Vec::mul(s.d, Vec::unsigned_byte<i % 4>(s.scale[i / 4]));
  }
  template <int i>
  LIULI_INLINE Vec::F minimum(const Scales& s, const At&) {
    return Vec::mul(s.minus_dmin, Vec::unsigned_byte<i % 4>(s.minimum[i / 4]));
  }
  template <int g, int j>
  LIULI_INLINE Vec::I code(const At& at) {
    const Vec::I low = low_nibbles(Vec::shift<4 * (g % 2)>(at.line(codes_at(g / 2, j))));
    if constexpr (!five)
      return low;
    else
      return Vec::or_and(low, Vec::shift<g - 4>(at.line(256 + 128 * j)), Vec::bytes(16));
  }
};
using Q4K = Q45K<false>;
using Q5K = Q45K<true>;

struct Q6K {
  static constexpr DType kType = DType::q6_k;
  static constexpr int kSub = 16, kBits = 6, kOffset = 5, kBytes = 3328;
  static constexpr bool kMinimum = false, kPaired = true, kFetchAhead = false;
  static constexpr int kColumns = kChunk;

  struct Scales {
    Vec::F d;
    Vec::I scale[4];  // signed bytes
  };
  LIULI_INLINE Scales scales(const At& at) {
    return {at.paired_half(), {at.line(0), at.line(64), at.line(128), at.line(192)}};
  }
  template <int i>
  LIULI_INLINE Vec::F scale(const Scales& s, const At&) {
    return Vec::mul(s.d, Vec::signed_byte<i % 4>(s.scale[i / 4]));
  }
  // Lines of a half: eight each of A, B, C (panel_regroup.h).
  template <int g, int j>
  LIULI_INLINE Vec::I code(const At& at) {
    constexpr int n = g / 4, i = g % 4, a = 256 + 1536 * n + 64 * j, b = a + 512, c = b + 512;
    if constexpr (i < 3) return Vec::band(at.line(i == 0 ? a : i == 1 ? b : c), Vec::bytes(63));
    const Vec::I low = Vec::band(Vec::shift<6>(at.line(a)), Vec::bytes(3));
    const Vec::I two = Vec::or_and(low, Vec::shift<4>(at.line(b)), Vec::bytes(12));
    return Vec::or_and(two, Vec::shift<2>(at.line(c)), Vec::bytes(48));
  }
};

struct Q2K {
  static constexpr DType kType = DType::q2_k;
  static constexpr int kSub = 16, kBits = 2, kOffset = -1, kBytes = 1344;
  static constexpr bool kMinimum = true, kPaired = false, kFetchAhead = true;
  static constexpr int kColumns = kChunk;

  // Codes stay where they lie in their byte, times 1, 4, 16 or 64; the scale is divided by as much, which is exact.
  static constexpr int code_shift(int group) { return 2 * (group % 4); }
  struct Scales {
    Vec::F d[4], minus_dmin;
    Vec::I scale[4], minimum[4];  // 4 bits each
  };
  LIULI_INLINE Scales scales(const At& at) {
    const Vec::F d = at.half(0);
    const Vec::I a = at.line(64), b = at.line(128), c = at.line(192), e = at.line(256);
    return {
        {d, Vec::mul(d, Vec::set(0x1p-2f)), Vec::mul(d, Vec::set(0x1p-4f)), Vec::mul(d, Vec::set(0x1p-6f))},
        minus(at.half(32)),
        {low_nibbles(a), low_nibbles(b), low_nibbles(c), low_nibbles(e)},
        {low_nibbles(Vec::shift<4>(a)), low_nibbles(Vec::shift<4>(b)), low_nibbles(Vec::shift<4>(c)),
         low_nibbles(Vec::shift<4>(e))}};
  }
  template <int i>
  LIULI_INLINE Vec::F scale(const Scales& s, const At&) {
    return Vec::mul(s.d[i / 2 % 4], Vec::unsigned_byte<i % 4>(s.scale[i / 4]));
  }
  template <int i>
  LIULI_INLINE Vec::F minimum(const Scales& s, const At&) {
    return Vec::mul(s.minus_dmin, Vec::unsigned_byte<i % 4>(s.minimum[i / 4]));
  }
  template <int g, int j>
  LIULI_INLINE Vec::I code(const At& at) {
    return Vec::band(at.line(320 + 64 * (8 * (g / 4) + j)), Vec::bytes(3 << code_shift(g)));
  }
};

struct Q3K {
  static constexpr DType kType = DType::q3_k;
  static constexpr int kSub = 16, kBits = 3, kOffset = 2, kBytes = 1728;
  static constexpr bool kMinimum = false, kPaired = true, kFetchAhead = true;
  static constexpr int kColumns = kChunk;

  struct Scales {
    Vec::F d;
    Vec::I scale[4];  // signed bytes
  };
  // Bytes 0…7 of the twelve hold the lower nibbles of scales 0…7 and, above them, 8…15; bytes 8…11 two bits
  // of each.
  LIULI_INLINE Scales scales(const At& at) {
    const Vec::I a = at.line(0), b = at.line(64), c = at.line(128), top = Vec::bytes(0x30),
                 offset = Vec::bytes(32);
    return {at.paired_half(),
            {Vec::subtract_bytes(Vec::or_and(low_nibbles(a), Vec::shift<-4>(c), top), offset),
             Vec::subtract_bytes(Vec::or_and(low_nibbles(b), Vec::shift<-2>(c), top), offset),
             Vec::subtract_bytes(Vec::or_and(low_nibbles(Vec::shift<4>(a)), c, top), offset),
             Vec::subtract_bytes(Vec::or_and(low_nibbles(Vec::shift<4>(b)), Vec::shift<2>(c), top), offset)}};
  }
  template <int i>
  LIULI_INLINE Vec::F scale(const Scales& s, const At&) {
    return Vec::mul(s.d, Vec::signed_byte<i % 4>(s.scale[i / 4]));
  }
  template <int g, int j>
  LIULI_INLINE Vec::I code(const At& at) {
    // Lines of A, C, B (panel_regroup.h): group 2 is the first that needs C.
    constexpr int a = 192 + 64 * j, c = a + 512, b = c + 512;
    constexpr int line = g < 3 ? a : g < 6 ? b : c, place = g % 3;
    if constexpr (place < 2 || g > 5) return Vec::band(Vec::shift<3 * place>(at.line(line)), Vec::bytes(7));
    const Vec::I low = Vec::band(Vec::shift<6>(at.line(line)), Vec::bytes(3));
    return Vec::or_and(low, Vec::shift < g == 2 ? 4 : 5 > (at.line(c)), Vec::bytes(4));
  }
};

// IQ4's signed table plus 128, so that codes stay unsigned.
alignas(16) constexpr uint8_t kIq4Plus128[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                                 129, 141, 153, 166, 181, 197, 217, 241};

struct IQ4XS {
  static constexpr DType kType = DType::iq4_xs;
  static constexpr int kSub = 32, kBits = 8, kOffset = 7, kBytes = 2176;
  static constexpr bool kMinimum = false, kPaired = false, kFetchAhead = false;
  static constexpr int kColumns = kChunk;

  struct Scales {
    Vec::F d;
    Vec::I low, high;  // eight nibbles; eight pairs of bits
  };
  LIULI_INLINE Scales scales(const At& at) { return {at.half(0), at.line(64), Vec::load_u16(at.body + 32)}; }
  template <int i>
  LIULI_INLINE Vec::F scale(const Scales& s, const At&) {
    const Vec::I low = Vec::band(Vec::shift<4 * i>(s.low), Vec::words(15));
    const Vec::I six = Vec::or_and(low, Vec::shift<2 * i - 4>(s.high), Vec::words(0x30));
    return Vec::mul(s.d, Vec::to_f32(Vec::add(six, Vec::words(-32))));
  }
  template <int g, int j>
  LIULI_INLINE Vec::I code(const At& at) {
    const Vec::I both = at.line(128 + 64 * (4 * g + j % 4));
    return Vec::lookup(kIq4Plus128, low_nibbles(Vec::shift < j < 4 ? 0 : 4 > (both)));
  }
};

// ---- blocks of 32, two to a unit ------------------------------------------------------------------------

enum class Codes32 { byte, nibble, nibble_and_bit, table };

template <DType type, Codes32 codes, bool minimum_, int offset>
struct Blocks32 {
  static constexpr DType kType = type;
  static constexpr bool kMinimum = minimum_, kPaired = false, kFetchAhead = false,
                        kBit = codes == Codes32::nibble_and_bit;
  static constexpr int kCodeBytes = codes == Codes32::byte ? 32 : 16;
  static constexpr int kBlock = 2 + 2 * kMinimum + 4 * kBit + kCodeBytes, kUnit = 32 * kBlock;
  static constexpr int kSub = 32, kOffset = offset, kBytes = 4 * kUnit;
  static constexpr int kBits = codes == Codes32::nibble ? 4 : kBit ? 5 : 8;
  static constexpr int kColumns = 32;
  static constexpr int kBlocks = 64 + 64 * kMinimum, kCodes = 64 * kBit, kBody = kCodes + 16 * kCodeBytes;

  struct Scales {};
  LIULI_INLINE Scales scales(const At&) { return {}; }
  template <int i>
  LIULI_INLINE Vec::F scale(const Scales&, const At& at) {
    return at.half(i / 2 * kUnit + 32 * (i % 2));
  }
  template <int i>
  LIULI_INLINE Vec::F minimum(const Scales&, const At& at) {
    return at.half(i / 2 * kUnit + 64 + 32 * (i % 2));
  }
  template <int g, int j>
  LIULI_INLINE Vec::I code(const At& at) {
    constexpr int block = g / 2 * kUnit + kBlocks + kBody * (g % 2), first = block + kCodes;
    if constexpr (codes == Codes32::byte) return at.line(first + 64 * j);
    const Vec::I low = low_nibbles(Vec::shift < j < 4 ? 0 : 4 > (at.line(first + 64 * (j % 4))));
    if constexpr (codes == Codes32::table) return Vec::lookup(kIq4Plus128, low);
    if constexpr (!kBit)
      return low;
    else
      return Vec::or_and(low, Vec::shift<j - 4>(at.line(block)), Vec::bytes(16));
  }
};
using Q40 = Blocks32<DType::q4_0, Codes32::nibble, false, 3>;
using Q41 = Blocks32<DType::q4_1, Codes32::nibble, true, -1>;
using Q50 = Blocks32<DType::q5_0, Codes32::nibble_and_bit, false, 4>;
using Q51 = Blocks32<DType::q5_1, Codes32::nibble_and_bit, true, -1>;
using Q80 = Blocks32<DType::q8_0, Codes32::byte, false, 7>;
using IQ4NL = Blocks32<DType::iq4_nl, Codes32::table, false, 7>;

// ---- compile-time loops ---------------------------------------------------------------------------------

template <int n>
struct Index {
  static constexpr int value = n;
};

/// f(Index<begin>{}) … f(Index<end − 1>{})
template <int begin, int end, class F>
LIULI_INLINE void unroll(F&& f) {
  if constexpr (begin < end) {
    f(Index<begin>{});
    unroll<begin + 1, end>(f);
  }
}

}  // namespace
}  // namespace liuli::kernels
