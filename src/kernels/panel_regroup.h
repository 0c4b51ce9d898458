// Codes of three and of six bits, whose bits a file keeps in two planes, put together within a panel: three lines of
// granules (in a file's block: stretches of 32 bytes) become three others, byte by byte. Private to the files that permute panels.
//
// In a file a code's bits lie in different bytes at different places: two shifts, a mask and a combination for each four
// columns. Regrouped, most codes of Q6_K are a mask and those of Q3_K a shift and a mask (granule_types.h); the lost places
// are filled with the bits of the remaining codes, so that no byte is added.
#pragma once
#include <cstdint>

#include "kernels/panel_forms.h"

namespace liuli::kernels {

/// Words of any width, also vectors of them: every byte by itself.
template <class Word>
struct LineTriple {
  Word a, b, c;
};

// Bits of w moved up (or, if negative, down) by `up`, then masked in every byte. A mask takes only bits that stayed in
// their byte.
template <int up, uint32_t mask, class Word>
constexpr Word bits_moved(Word w) {
  constexpr uint32_t every = mask * 0x01010101u;
  if constexpr (up >= 0)
    return w << up & every;
  else
    return w >> -up & every;
}

/// Q6_K, a half of 128 columns: ql's byte b (codes 0 and 2: low nibbles), its byte 32 + b (codes 1 and 3), qh's byte b.
/// Regrouped, codes 0, 1, 2 are the lower six bits of one byte each; above them lie two bits each of code 3.
struct SixBits {
  template <class Word>
  static constexpr LineTriple<Word> together(LineTriple<Word> file) {
    const Word low = file.a, low2 = file.b, high = file.c;
    return {bits_moved<0, 15>(low) | bits_moved<4, 48>(high) | bits_moved<2, 192>(low2),
            bits_moved<0, 15>(low2) | bits_moved<2, 48>(high) | bits_moved<0, 192>(low2),
            bits_moved<-4, 15>(low) | bits_moved<0, 240>(high)};
  }
  template <class Word>
  static constexpr LineTriple<Word> apart(LineTriple<Word> panel) {
    const auto [a, b, c] = panel;
    return {bits_moved<0, 15>(a) | bits_moved<4, 240>(c),
            bits_moved<0, 15>(b) | bits_moved<-2, 48>(a) | bits_moved<0, 192>(b),
            bits_moved<-4, 3>(a) | bits_moved<-2, 12>(b) | bits_moved<0, 240>(c)};
  }
};

/// Q3_K: hmask's byte b (bit g of group g), qs' byte b (two bits each of groups 0 to 3), its byte 32 + b (groups 4 to 7).
/// Regrouped: groups 0, 1; 3, 4; 6, 7 are bits 0 to 2 and 3 to 5 of one byte; group 2 has its lower bits above the first
/// pair and its top bit in bit 6 of the third byte, group 5 above the second and in bit 7.
struct ThreeBits {
  template <class Word>
  static constexpr LineTriple<Word> together(LineTriple<Word> file) {
    const Word h = file.a, low = file.b, high = file.c;
    return {bits_moved<0, 3>(low) | bits_moved<2, 4>(h) | bits_moved<1, 24>(low) | bits_moved<4, 32>(h) |
                bits_moved<2, 192>(low),
            bits_moved<-6, 3>(low) | bits_moved<-1, 4>(h) | bits_moved<3, 24>(high) | bits_moved<1, 32>(h) |
                bits_moved<4, 192>(high),
            bits_moved<-4, 3>(high) | bits_moved<-4, 4>(h) | bits_moved<-3, 24>(high) |
                bits_moved<-2, 32>(h) | bits_moved<4, 64>(h) | bits_moved<2, 128>(h)};
  }
  template <class Word>
  static constexpr LineTriple<Word> apart(LineTriple<Word> panel) {
    const auto [a, b, c] = panel;
    return {bits_moved<-2, 1>(a) | bits_moved<-4, 2>(a) | bits_moved<-4, 4>(c) | bits_moved<1, 8>(b) |
                bits_moved<-1, 16>(b) | bits_moved<-2, 32>(c) | bits_moved<4, 64>(c) | bits_moved<2, 128>(c),
            bits_moved<0, 3>(a) | bits_moved<-1, 12>(a) | bits_moved<-2, 48>(a) | bits_moved<6, 192>(b),
            bits_moved<-3, 3>(b) | bits_moved<-4, 12>(b) | bits_moved<4, 48>(c) | bits_moved<3, 192>(c)};
  }
};

/// Where the first bytes of 32 triples stand in a file's block.
struct TriplesAt {
  int a, b, c;
};

/// f(how, where) for every 32 triples of a block: nothing for most forms.
template <class F>
constexpr void for_each_regrouping(Regrouping regrouping, F&& f) {
  if (regrouping == Regrouping::six_bits) {
    f(SixBits{}, TriplesAt{0, 32, 128});
    f(SixBits{}, TriplesAt{64, 96, 160});
  }
  if (regrouping == Regrouping::three_bits) f(ThreeBits{}, TriplesAt{0, 32, 64});
}

}  // namespace liuli::kernels
