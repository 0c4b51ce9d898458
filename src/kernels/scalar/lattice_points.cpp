#include "kernels/scalar/lattice_points.h"

#include "kernels/scalar/iq_tables.h"

namespace liuli::kernels {
namespace {

constexpr int code_at(uint16_t point, int bits, int i) { return (point >> (bits * i)) & ((1 << bits) - 1); }

constexpr int iq2(uint16_t point, int i) {
  const int code = code_at(point, 2, i);
  return 128 + 8 + 17 * code + (code >> 1);
}
constexpr int iq1(uint16_t point, int i) { return 16 + 8 * (code_at(point, 2, i) - 1); }
constexpr int iq3_xxs(uint16_t point, int i) {
  const int code = code_at(point, 4, i) & 7;
  return 128 + 4 + 8 * code + 2 * ((code + 1) >> 3);
}
constexpr int iq3_s(uint16_t point, int i) { return 128 + 1 + 2 * (code_at(point, 4, i) & 7); }

template <class Word>
constexpr Word spread(uint16_t point, int (*value)(uint16_t, int)) {
  Word word = 0;
  for (int i = 0; i < static_cast<int>(sizeof word); i++)
    word |= static_cast<Word>(static_cast<uint8_t>(value(point, i))) << (8 * i);
  return word;
}

template <class Word, int n>
constexpr LatticePoints<Word, n> spread_all(const uint16_t (&grid)[n], int (*value)(uint16_t, int)) {
  LatticePoints<Word, n> points{};
  for (int i = 0; i < n; i++) points.word[i] = spread<Word>(grid[i], value);
  return points;
}

constexpr uint16_t eight_to_nibbles(uint16_t point) {
  int word = 0;
  for (int i = 0; i < 4; i++) word |= (code_at(point, 2, i) | code_at(point, 2, 4 + i) << 2) << (4 * i);
  return static_cast<uint16_t>(word);
}
constexpr uint16_t four_to_nibbles(uint16_t point) { return point & 0x7777; }

template <int n>
constexpr LatticeNibbles<n> nibbles_of_all(const uint16_t (&grid)[n], uint16_t (*nibbles)(uint16_t)) {
  LatticeNibbles<n> points{};
  for (int i = 0; i < n; i++) points.word[i] = nibbles(grid[i]);
  return points;
}

// A point of one column, 0, stands for its code.
constexpr NibbleBytes bytes_of_nibbles(int (*value)(uint16_t, int), bool two_quads) {
  NibbleBytes bytes{};
  for (int nibble = 0; nibble < 16; nibble++)
    for (int q = 0; q < 2; q++) {
      const int code = two_quads ? (nibble >> (2 * q)) & 3 : nibble & 7;
      bytes.quad[q][nibble] = static_cast<uint8_t>(value(static_cast<uint16_t>(code), 0));
    }
  return bytes;
}

}  // namespace

constinit const LatticePoints<uint64_t, 256> kIq2XxsPoints = spread_all<uint64_t>(kIq2XxsGrid, iq2);
constinit const LatticePoints<uint64_t, 512> kIq2XsPoints = spread_all<uint64_t>(kIq2XsGrid, iq2);
constinit const LatticePoints<uint64_t, 1024> kIq2SPoints = spread_all<uint64_t>(kIq2SGrid, iq2);
constinit const LatticePoints<uint32_t, 256> kIq3XxsPoints = spread_all<uint32_t>(kIq3XxsGrid, iq3_xxs);
constinit const LatticePoints<uint32_t, 512> kIq3SPoints = spread_all<uint32_t>(kIq3SGrid, iq3_s);
constinit const LatticePoints<uint64_t, 2048> kIq1Points = spread_all<uint64_t>(kIq1SGrid, iq1);

constinit const LatticeNibbles<256> kIq2XxsNibbles = nibbles_of_all(kIq2XxsGrid, eight_to_nibbles);
constinit const LatticeNibbles<512> kIq2XsNibbles = nibbles_of_all(kIq2XsGrid, eight_to_nibbles);
constinit const LatticeNibbles<1024> kIq2SNibbles = nibbles_of_all(kIq2SGrid, eight_to_nibbles);
constinit const LatticeNibbles<2048> kIq1Nibbles = nibbles_of_all(kIq1SGrid, eight_to_nibbles);
constinit const LatticeNibbles<256> kIq3XxsNibbles = nibbles_of_all(kIq3XxsGrid, four_to_nibbles);
constinit const LatticeNibbles<512> kIq3SNibbles = nibbles_of_all(kIq3SGrid, four_to_nibbles);
constinit const NibbleBytes kIq2NibbleBytes = bytes_of_nibbles(iq2, true),
                            kIq1NibbleBytes = bytes_of_nibbles(iq1, true),
                            kIq3XxsNibbleBytes = bytes_of_nibbles(iq3_xxs, false),
                            kIq3SNibbleBytes = bytes_of_nibbles(iq3_s, false);

}  // namespace liuli::kernels
