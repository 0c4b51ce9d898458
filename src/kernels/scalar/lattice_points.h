// The points of the IQ lattices as bytes that the integer kernels multiply: one unsigned code per column.
#pragma once
#include <cstdint>

namespace liuli::kernels {

template <class Word, int n>
struct LatticePoints {
  Word word[n];
};
/// IQ2: 128 + magnitude (8, 25, 43) of eight columns, the first in the low byte; IQ3: of four columns.
extern const LatticePoints<uint64_t, 256> kIq2XxsPoints;
extern const LatticePoints<uint64_t, 512> kIq2XsPoints;
extern const LatticePoints<uint64_t, 1024> kIq2SPoints;
extern const LatticePoints<uint32_t, 256> kIq3XxsPoints;
extern const LatticePoints<uint32_t, 512> kIq3SPoints;
/// IQ1: 16 + 8 · (−1, 0 or 1) of eight columns: eighths, so that the shift of ±1/8 is ±1.
extern const LatticePoints<uint64_t, 2048> kIq1Points;

/// The same points for look-ups in registers, sixteen bits each: nibble i of a point of eight columns is the code of
/// column i and, above it, of column 4 + i; of four columns, the code of column i. kNibbles…[q] turns a nibble into the
/// byte of quad q of the point as above.
template <int n>
struct alignas(64) LatticeNibbles {
  uint16_t word[n];
};
extern const LatticeNibbles<256> kIq2XxsNibbles, kIq3XxsNibbles;
extern const LatticeNibbles<512> kIq2XsNibbles, kIq3SNibbles;
extern const LatticeNibbles<1024> kIq2SNibbles;
extern const LatticeNibbles<2048> kIq1Nibbles;
struct alignas(16) NibbleBytes {
  uint8_t quad[2][16];
};
extern const NibbleBytes kIq2NibbleBytes, kIq1NibbleBytes, kIq3XxsNibbleBytes, kIq3SNibbleBytes;

/// Seven given signs and the one that makes their number even.
inline unsigned eight_signs(unsigned code) {
  const unsigned seven = code & 127;
  return seven | (static_cast<unsigned>(__builtin_popcount(seven) & 1) << 7);
}

}  // namespace liuli::kernels
