// The panel forms: how sixteen rows of a stored type lie side by side in memory.
//
// A panel is a permutation of its rows' file bytes (of three types: bits). In the "granules" form every block is cut into granules
// of four bytes; granule i of the 16 rows is one line of 64 bytes, lane = row. A two-byte field (d, dmin, m,
// scales_h) becomes a line of 32 bytes. So a lane of a 512-bit register belongs to one output, and a
// broadcast of four activations meets it. Below in panel order: [n] is n lines of 64 bytes, (d) a line of 32
// bytes.
//
//   type            per 256 columns                              codes of 32-group g, quad j (columns 4j … 4j + 3 of the group)
//   Q4_K            (d)(dmin)[3 scales][32 qs]                   qs[8(g/2)+j] >> 4(g&1), & 15
//   Q5_K            (d)(dmin)[3 scales][8 × (qh, qs)][24 qs]     the same, bit g of qh[j] becomes bit 4
//   Q2_K            (d)(dmin)[4 scales][16 qs]                   qs[8(g/4)+j] & 3 << 2(g%4), times 4^(g%4): the scale takes it off
//   IQ4_XS          (d)(scales_h)[1 scales_l][32 qs]             qs[4g+j] low nibble for j < 4, qs[4g+j−4] high nibble above
//   IQ1_M           the file's granules in order                 as the other IQ types
//                   per 512 columns: (d0)(d1), then twice
//   Q6_K            [4 scales][8 A][8 B][8 C][8 A][8 B][8 C]     n=g/4, i=g%4: line 8n+j of A, B, C & 63 for i = 0, 1, 2; for 3 the two bits above, of A lowest
//   Q3_K            [3 scales][8 A][8 C][8 B]                    A: g = 0, 1; B: 3, 4; C: 6, 7, three bits each; 2 and 5: two bits above in A and B, one in C
//   TQ2_0           [16 qs]                                      as Q2_K, from line 0
//   TQ1_0           [12 of 5 digits][1 of 4 digits]              digit of line j (g < 5: digit g of line j; above: digits of lines 8 … 12)
//   IQ1 IQ2 IQ3     the file's granules in order                 points of a lattice, signs and scales: granule_lattices.h
//                   per 64 columns (blocks 0 and 1)
//   Q8_0            (d0)(d1)[8 q0][8 q1], bytes xor 0x80         q[j]
//   Q4_0 IQ4_NL     (d0)(d1)[4 q0][4 q1]                         q[j] low nibble for j < 4, q[j−4] high nibble above
//   Q4_1            (d0)(d1)(m0)(m1)[4 q0][4 q1]                 the same
//   Q5_0 Q5_1       like Q4_0 Q4_1, with [1 qh] before each q    the same, bit j of byte c of qh becomes bit 4 of column 4j + c
//   NVFP4           [1 scales][8 q], one block                   of 16: q[2s + j % 2], low nibble for j < 2, high above
//                   per 128 columns
//   MXFP4           (e0)(e1)(e2)(e3), 16 bytes each, [4 q] × 4   as Q4_0
//   FP8 E4M3        [1 f32 scale][32 q]                          q[j]
//   F16 BF16        per 2 columns: [16 rows][2 columns]
//   F32             per column: [16 rows]
//
// Decoding touches every new line just after the one before it: memory is read upwards without a gap. A gap of 512 bytes per
// panel (the d lines of Q6_K used to lie at its end) cost a quarter of the speed, lines out of order the half (Zen 4).
// A, B, C of Q6_K and Q3_K are ql and qh, hmask and qs with their bits regrouped
// (panel_regroup.h): a shift and two bit operations less for each four columns. Q5's qh has its bits moved (4j + c to 8c + j), so that one shift lands a bit in place; Q8_0's
// xor makes the bytes unsigned. Integers and F64 have the "rows" form: file rows one after another, each
// padded to a multiple of 4 bytes.
#pragma once
#include "kernels/kernels.h"

namespace liuli::kernels {

constexpr int kChunk = 256;  ///< columns that kernels handle at a time: one super-block, eight blocks of 32
/// Most file bytes of one row's chunk (F64).
constexpr int kMaxChunkBytes = kChunk * 8;

/// Sixteen rows into a panel that was zeroed: what PanelLayout::pack_row writes lane by lane, at the memory's speed.
void pack_rows(DType type, const uint8_t* const* rows, uint8_t* panel, int64_t k) noexcept;

/// Columns [256 · chunk, min(256 · chunk + 256, k)) of one lane, back in file form.
void unpack_chunk(DType type, const uint8_t* panel, int64_t k, int64_t chunk, int lane,
                  uint8_t* blocks) noexcept;

/// Where column i of a chunk stands in ActivationChunk::q: of every four columns 0 and 2 come first, then 1
/// and 3, so that the even bytes of a granule (& 0x00ff00ff) and the odd ones (>> 8) each meet one pair.
constexpr int activation_place(int i) { return (i & ~3) | (i & 1) << 1 | (i & 2) >> 1; }

/// The same columns of all sixteen lanes, decoded: out[column · 16 + lane], zeros up to 256 columns (scalar
/// code).
void decode_chunk(DType type, const uint8_t* panel, int64_t k, int64_t chunk, float* out) noexcept;

/// Bytes from one row to the next in the "rows" form.
int64_t rows_form_stride(DType type, int64_t k) noexcept;

}  // namespace liuli::kernels
