// IQ1, IQ2, IQ3: columns are points of a lattice, looked up in a table of codes (scalar/lattice_points.h) that stays in
// L1, with signs or a shift. Included only by ISA files.
//
// Where a register can be permuted by words (AVX-512), points are looked up there: 32 at a time, 64 entries of the table
// per vpermi2w, chosen by a mask per further bit of the index. Elsewhere every lane loads its point, of four or eight columns.
//
// A panel is the file's granules in order (panels.h). Beside kType … kColumns of granule_types.h:
//   indices(at, g, line)       numbers of group g's points as words: points 4 line and 4 line + 2, then 4 line + 1 and + 3
//                              (IQ2_XS: 0 and 1, then 2 and 3); bits above the number do not count
//   extra(at, g)               signs (a byte per eight columns) or shifts of group g
//   finish<q>(code, extra)     quad q of the group with them
//   scale(scales, at, i)       of sub-block i
#pragma once
#include "kernels/granule_types.h"
#include "kernels/scalar/lattice_points.h"

namespace liuli::kernels {
namespace {

/// Byte g of a row's eight, of which four are in each of two lines.
LIULI_INLINE Vec::I byte_of_eight(const At& at, int line, int g) {
  return Vec::band(Vec::shift_by(at.line(64 * (line + g / 4)), 8 * (g % 4)), Vec::words(255));
}

/// Bytes of seven signs; the eighth makes their number even.
LIULI_INLINE Vec::I with_eighth_signs(Vec::I seven) {
  Vec::I parity = Vec::bxor(seven, Vec::shift<4>(seven));
  parity = Vec::bxor(parity, Vec::shift<2>(parity));
  parity = Vec::bxor(parity, Vec::shift<1>(parity));
  return Vec::bor(seven, Vec::shift<-7>(Vec::band(parity, Vec::bytes(1))));
}
/// The same from 28 bits of four points' signs.
LIULI_INLINE Vec::I signs_of_28(Vec::I v) {
  Vec::I seven = Vec::band(v, Vec::words(0x7f));
  seven = Vec::or_and(seven, Vec::shift<-1>(v), Vec::words(0x7f00));
  seven = Vec::or_and(seven, Vec::shift<-2>(v), Vec::words(0x7f0000));
  return with_eighth_signs(Vec::or_and(seven, Vec::shift<-3>(v), Vec::words(0x7f000000)));
}

/// Two registers of 16-bit words.
struct WordPair {
  Vec::I even, odd;
};
/// Bytes 0 and 2 of every lane, and bytes 1 and 3.
LIULI_INLINE WordPair bytes_to_words(Vec::I v) {
  return {Vec::band(v, Vec::words(0x00ff00ff)), Vec::band(Vec::shift<8>(v), Vec::words(0x00ff00ff))};
}

struct Signed {
  static constexpr bool kNeighbours = false;  // whether a 32-bit lane's two words are neighbouring points
  static constexpr bool kMinimum = false, kPaired = true, kFetchAhead = true, kLattice = true;
  static constexpr int kColumns = kChunk, kBits = 8, kOffset = 7;
  struct Scales {
    Vec::F d;
  };
  LIULI_INLINE Scales scales(const At& at) { return {at.paired_half()}; }
  template <int q>
  LIULI_INLINE Vec::I finish(Vec::I code, Vec::I signs) {
    return Vec::with_signs<q / 2, 4 * (q % 2)>(code, signs);
  }
  // d · (1/2 + s) · unit
  LIULI_INLINE Vec::F scale_of(Vec::F d, Vec::I s, float unit) {
    return Vec::mul(Vec::mul(d, Vec::add(Vec::set(0.5f), Vec::to_f32(s))), Vec::set(unit));
  }
};

/// Groups of a line of four point bytes and a line of four signs of seven bits and a scale.
struct IQ2XXS : Signed {
  static constexpr DType kType = DType::iq2_xxs;
  static constexpr int kSub = 32, kBytes = 1024;
  static constexpr auto& kPoints = kIq2XxsPoints;
  static constexpr auto& kNibbles = kIq2XxsNibbles;
  static constexpr auto& kBytesOfNibbles = kIq2NibbleBytes;
  static constexpr int kPointColumns = 8;
  LIULI_INLINE WordPair indices(const At& at, int g, int line) {
    (void)line;
    const Vec::I p = at.line(64 * 2 * g);
    return bytes_to_words(p);
  }
  LIULI_INLINE Vec::I extra(const At& at, int g) { return signs_of_28(at.line(64 * (2 * g + 1))); }
  LIULI_INLINE Vec::F scale(const Scales& s, const At& at, int i) {
    return scale_of(s.d, Vec::shift<28>(at.line(64 * (2 * i + 1))), 0.25f);
  }
};

/// 16 lines of two points of nine bits with seven signs; two lines of scales.
struct IQ2XS : Signed {
  static constexpr DType kType = DType::iq2_xs;
  static constexpr int kSub = 16, kBytes = 1152;
  static constexpr bool kNeighbours = true;
  static constexpr auto& kPoints = kIq2XsPoints;
  static constexpr auto& kNibbles = kIq2XsNibbles;
  static constexpr auto& kBytesOfNibbles = kIq2NibbleBytes;
  static constexpr int kPointColumns = 8;
  LIULI_INLINE WordPair indices(const At& at, int g, int line) {
    (void)line;
    return {at.line(128 * g), at.line(128 * g + 64)};
  }
  LIULI_INLINE Vec::I extra(const At& at, int g) {
    const Vec::I a = at.line(128 * g), b = at.line(128 * g + 64);
    Vec::I seven = Vec::band(Vec::shift<9>(a), Vec::words(0x7f));
    seven = Vec::or_and(seven, Vec::shift<17>(a), Vec::words(0x7f00));
    seven = Vec::or_and(seven, Vec::shift<-7>(b), Vec::words(0x7f0000));
    return with_eighth_signs(Vec::or_and(seven, Vec::shift<1>(b), Vec::words(0x7f000000)));
  }
  LIULI_INLINE Vec::F scale(const Scales& s, const At& at, int i) {
    const Vec::I both = byte_of_eight(at, 16, i / 2);
    return scale_of(s.d, Vec::band(Vec::shift_by(both, 4 * (i % 2)), Vec::words(15)), 0.25f);
  }
};

/// 8 lines of low point bytes, 8 of signs, two of two high bits per point, two of scales.
struct IQ2S : Signed {
  static constexpr DType kType = DType::iq2_s;
  static constexpr int kSub = 16, kBytes = 1280;
  static constexpr auto& kPoints = kIq2SPoints;
  static constexpr auto& kNibbles = kIq2SNibbles;
  static constexpr auto& kBytesOfNibbles = kIq2NibbleBytes;
  static constexpr int kPointColumns = 8;
  LIULI_INLINE WordPair indices(const At& at, int g, int line) {
    (void)line;
    const WordPair low = bytes_to_words(at.line(64 * g));
    const Vec::I high = byte_of_eight(at, 16, g), a = Vec::words(0x300), b = Vec::words(0x3000000);
    return {Vec::or_and(Vec::or_and(low.even, Vec::shift<-8>(high), a), Vec::shift<-20>(high), b),
            Vec::or_and(Vec::or_and(low.odd, Vec::shift<-6>(high), a), Vec::shift<-18>(high), b)};
  }
  LIULI_INLINE Vec::I extra(const At& at, int g) { return at.line(64 * (8 + g)); }
  LIULI_INLINE Vec::F scale(const Scales& s, const At& at, int i) {
    const Vec::I both = byte_of_eight(at, 18, i / 2);
    return scale_of(s.d, Vec::band(Vec::shift_by(both, 4 * (i % 2)), Vec::words(15)), 0.25f);
  }
};

/// 16 lines of point bytes, 8 of four signs of seven bits and a scale.
struct IQ3XXS : Signed {
  static constexpr DType kType = DType::iq3_xxs;
  static constexpr int kSub = 32, kBytes = 1536;
  static constexpr auto& kPoints = kIq3XxsPoints;
  static constexpr auto& kNibbles = kIq3XxsNibbles;
  static constexpr auto& kBytesOfNibbles = kIq3XxsNibbleBytes;
  static constexpr int kPointColumns = 4;
  LIULI_INLINE WordPair indices(const At& at, int g, int line) {
    return bytes_to_words(at.line(64 * (2 * g + line)));
  }
  LIULI_INLINE Vec::I extra(const At& at, int g) { return signs_of_28(at.line(64 * (16 + g))); }
  LIULI_INLINE Vec::F scale(const Scales& s, const At& at, int i) {
    return scale_of(s.d, Vec::shift<28>(at.line(64 * (16 + i))), 0.5f);
  }
};

/// 16 lines of low point bytes, two of ninth bits, 8 of signs, one of scales.
struct IQ3S : Signed {
  static constexpr DType kType = DType::iq3_s;
  static constexpr int kSub = 32, kBytes = 1728;
  static constexpr auto& kPoints = kIq3SPoints;
  static constexpr auto& kNibbles = kIq3SNibbles;
  static constexpr auto& kBytesOfNibbles = kIq3SNibbleBytes;
  static constexpr int kPointColumns = 4;
  LIULI_INLINE WordPair indices(const At& at, int g, int line) {
    const WordPair low = bytes_to_words(at.line(64 * (2 * g + line)));
    const Vec::I high = Vec::shift_by(byte_of_eight(at, 16, g), 4 * line);
    const Vec::I a = Vec::words(0x100), b = Vec::words(0x1000000);
    return {Vec::or_and(Vec::or_and(low.even, Vec::shift<-8>(high), a), Vec::shift<-22>(high), b),
            Vec::or_and(Vec::or_and(low.odd, Vec::shift<-7>(high), a), Vec::shift<-21>(high), b)};
  }
  LIULI_INLINE Vec::I extra(const At& at, int g) { return at.line(64 * (18 + g)); }
  LIULI_INLINE Vec::F scale(const Scales& s, const At& at, int i) {
    const Vec::I nibble = Vec::band(Vec::shift_by(at.line(64 * 26), 4 * i), Vec::words(15));
    return Vec::mul(s.d, Vec::to_f32(Vec::add(Vec::add(nibble, nibble), Vec::words(1))));
  }
};

/// Codes in eighths; a set bit shifts them down by one, else up.
struct Shifted {
  static constexpr bool kNeighbours = false;
  static constexpr bool kMinimum = false, kPaired = true, kFetchAhead = true, kLattice = true;
  static constexpr int kColumns = kChunk, kBits = 5, kOffset = 4;
  struct Scales {
    Vec::F d;
  };
  /// −1 in every byte where the top bit is set, else 1.
  LIULI_INLINE Vec::I shift_bytes(Vec::I top) { return Vec::bor(Vec::top_bit(top), Vec::bytes(1)); }
  /// d · (2 s + 1) / 8
  LIULI_INLINE Vec::F scale_of(Vec::F d, Vec::I s) {
    return Vec::mul(Vec::mul(d, Vec::to_f32(Vec::add(Vec::add(s, s), Vec::words(1)))), Vec::set(0.125f));
  }
};

/// 8 lines of low point bytes, 4 of two words: three high bits for each of four points, scale, shift.
struct IQ1S : Shifted {
  static constexpr DType kType = DType::iq1_s;
  static constexpr int kSub = 32, kBytes = 768;
  LIULI_INLINE Scales scales(const At& at) { return {at.paired_half()}; }
  static constexpr auto& kPoints = kIq1Points;
  static constexpr auto& kNibbles = kIq1Nibbles;
  static constexpr auto& kBytesOfNibbles = kIq1NibbleBytes;
  static constexpr int kPointColumns = 8;
  LIULI_INLINE WordPair indices(const At& at, int g, int line) {
    (void)line;
    const WordPair low = bytes_to_words(at.line(64 * g));
    const Vec::I high = word(at, g), a = Vec::words(0x700), b = Vec::words(0x7000000);
    return {Vec::or_and(Vec::or_and(low.even, Vec::shift<-8>(high), a), Vec::shift<-18>(high), b),
            Vec::or_and(Vec::or_and(low.odd, Vec::shift<-5>(high), a), Vec::shift<-15>(high), b)};
  }
  LIULI_INLINE Vec::I word(const At& at, int g) {
    return Vec::shift_by(at.line(64 * (8 + g / 2)), 16 * (g % 2));
  }
  LIULI_INLINE Vec::I extra(const At& at, int g) { return shift_bytes(Vec::shift<-16>(word(at, g))); }
  template <int q>
  LIULI_INLINE Vec::I finish(Vec::I code, Vec::I shift) {
    return Vec::add_bytes(code, shift);
  }
  LIULI_INLINE Vec::F scale(const Scales& s, const At& at, int i) {
    return scale_of(s.d, Vec::band(Vec::shift<12>(word(at, i)), Vec::words(7)));
  }
};

/// 8 lines of low point bytes, 4 of a nibble per point (three high bits, shift), two of two words: four scales of three
/// bits, a nibble of d on top.
struct IQ1M : Shifted {
  static constexpr DType kType = DType::iq1_m;
  static constexpr int kSub = 16, kBytes = 896;
  static constexpr bool kPaired = false;
  LIULI_INLINE Scales scales(const At& at) {
    const Vec::I a = at.line(64 * 12), b = at.line(64 * 13);
    Vec::I d = Vec::band(Vec::shift<12>(a), Vec::words(15));
    d = Vec::or_and(d, Vec::shift<24>(a), Vec::words(0xf0));
    d = Vec::or_and(d, Vec::shift<4>(b), Vec::words(0xf00));
    return {Vec::half_of_word(Vec::or_and(d, Vec::shift<16>(b), Vec::words(0xf000)))};
  }
  static constexpr auto& kPoints = kIq1Points;
  static constexpr auto& kNibbles = kIq1Nibbles;
  static constexpr auto& kBytesOfNibbles = kIq1NibbleBytes;
  static constexpr int kPointColumns = 8;
  LIULI_INLINE WordPair indices(const At& at, int g, int line) {
    (void)line;
    const WordPair low = bytes_to_words(at.line(64 * g));
    const Vec::I high = extra(at, g), a = Vec::words(0x700), b = Vec::words(0x7000000);
    return {Vec::or_and(Vec::or_and(low.even, Vec::shift<-8>(high), a), Vec::shift<-16>(high), b),
            Vec::or_and(Vec::or_and(low.odd, Vec::shift<-4>(high), a), Vec::shift<-12>(high), b)};
  }
  // Bit 3 of nibble p of the group's sixteen bits.
  LIULI_INLINE Vec::I extra(const At& at, int g) {
    return Vec::shift_by(at.line(64 * (8 + g / 2)), 16 * (g % 2));
  }
  template <int q>
  LIULI_INLINE Vec::I finish(Vec::I code, Vec::I nibbles) {
    return Vec::add_bytes(code, shift_bytes(Vec::shift<-(28 - 4 * (q / 2))>(nibbles)));
  }
  LIULI_INLINE Vec::F scale(const Scales& s, const At& at, int i) {
    const Vec::I words = at.line(64 * (12 + i / 8));
    return scale_of(s.d, Vec::band(Vec::shift_by(words, 16 * (i / 4 % 2) + 3 * (i % 4)), Vec::words(7)));
  }
};

/// Number of a group's quad whose code is `half` of point p of `line`.
template <class T>
constexpr int quad_of(int line, int p, int half) {
  return (4 * line + p) * (T::kPointColumns / 4) + half;
}
/// Where point p of a line stands in its WordPair.
template <class T>
constexpr bool in_odd_words(int p) {
  return T::kNeighbours ? p / 2 : p % 2;
}
template <class T>
constexpr bool in_upper_words(int p) {
  return T::kNeighbours ? p % 2 : p / 2;
}

// Group g from look-ups in registers of V = Vec, to codes[8 g …].
template <class T, class V, class Out>
LIULI_INLINE void look_up_points(const At& at, int g, Out& out) {
  constexpr int lines = 8 / T::kPointColumns, n = sizeof(T::kNibbles) / 2;
  const Vec::I extra = T::extra(at, g);
  unroll<0, lines>([&](auto line_index) __attribute__((always_inline)) {
    constexpr int line = decltype(line_index)::value;
    const WordPair idx = T::indices(at, g, line);
    const WordPair points = {V::template lookup_words<n>(T::kNibbles.word, idx.even),
                             V::template lookup_words<n>(T::kNibbles.word, idx.odd)};
    unroll<0, 4>([&](auto point_index) __attribute__((always_inline)) {
      constexpr int p = decltype(point_index)::value;
      const Vec::I nibbles =
          V::template nibbles_of_word<in_upper_words<T>(p)>(in_odd_words<T>(p) ? points.odd : points.even);
      unroll<0, T::kPointColumns / 4>([&](auto quad_index) __attribute__((always_inline)) {
        constexpr int half = decltype(quad_index)::value, q = quad_of<T>(line, p, half);
        const Vec::I code = Vec::lookup(T::kBytesOfNibbles.quad[half], nibbles);
        Vec::store(out.codes[8 * g + q], T::template finish<q>(code, extra));
      });
    });
  });
}

/// Numbers of a group's points in L1: of each line the words `even` and `odd` (WordPair).
template <class T>
using PointNumbers = uint16_t[8 / T::kPointColumns][2][2 * Vec::kLanes];

template <class T>
LIULI_INLINE void put_numbers(const At& at, int g, PointNumbers<T>& numbers) {
  constexpr int n = sizeof(T::kNibbles) / 2;
  const Vec::I number = Vec::words((n - 1) * 0x10001);
  for (int line = 0; line < 8 / T::kPointColumns; line++) {
    const WordPair idx = T::indices(at, g, line);
    Vec::store(numbers[line][0], Vec::band(idx.even, number));
    Vec::store(numbers[line][1], Vec::band(idx.odd, number));
  }
}

// The same through L1: every lane loads its entries of the table.
template <class T, class V, class Out>
LIULI_INLINE void gather_points(const At& at, int g, const PointNumbers<T>& numbers, Out& out) {
  constexpr int lines = 8 / T::kPointColumns;
  const Vec::I extra = T::extra(at, g);
  unroll<0, lines>([&](auto line_index) __attribute__((always_inline)) {
    constexpr int line = decltype(line_index)::value;
    unroll<0, 4>([&](auto point_index) __attribute__((always_inline)) {
      constexpr int p = decltype(point_index)::value;
      Vec::I quads[T::kPointColumns / 4];
      V::gather(T::kPoints.word, numbers[line][in_odd_words<T>(p)] + in_upper_words<T>(p), quads);
      unroll<0, T::kPointColumns / 4>([&](auto quad_index) __attribute__((always_inline)) {
        constexpr int half = decltype(quad_index)::value, q = quad_of<T>(line, p, half);
        Vec::store(out.codes[8 * g + q], T::template finish<q>(quads[half], extra));
      });
    });
  });
}

/// Codes and scales of groups [begin, end) of a chunk, at their places in `out` (Unpacked<T>).
template <class T, class Out>
LIULI_INLINE void unpack_points(const At& at, int begin, int end, Out& out) {
  constexpr int subs_in_group = 32 / T::kSub;
  const typename T::Scales scales = T::scales(at);
  alignas(64) PointNumbers<T> numbers[8];
  if constexpr (!Vec::kLooksUpWords) {
    for (int g = begin; g < end; g++) put_numbers<T>(at, g, numbers[g]);
    asm volatile("" : "+m"(numbers));  // or GCC takes each out of its vector again, by two operations
  }
  for (int g = begin; g < end; g++) {
    if constexpr (Vec::kLooksUpWords)
      look_up_points<T, Vec>(at, g, out);
    else
      gather_points<T, Vec>(at, g, numbers[g], out);
    for (int i = g * subs_in_group; i < (g + 1) * subs_in_group; i++)
      Vec::store(out.scale[i], T::scale(scales, at, i));
  }
}

/// f(T{}) for every lattice type.
template <class F>
LIULI_INLINE void for_each_lattice_type(F&& f) {
  f(IQ1S{}), f(IQ1M{}), f(IQ2XXS{}), f(IQ2XS{}), f(IQ2S{}), f(IQ3XXS{}), f(IQ3S{});
}

}  // namespace
}  // namespace liuli::kernels
