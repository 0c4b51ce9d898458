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
//   Q5_K            (d)(dmin)[3 scales][8 qh][32 qs]             the same, bit g of qh[j] becomes bit 4
//   Q6_K            [4 scales][16 C][8 A][8 B][8 A][8 B] … (d)   n=g/4, i=g%4: line 8n+j of A, B, C & 63 for i = 0, 1, 2; for 3 the two bits above, of A lowest
//   Q2_K            (d)(dmin)[4 scales][16 qs]                   qs[8(g/4)+j] & 3 << 2(g%4), times 4^(g%4): the scale takes it off
//   Q3_K            [3 scales][8 A][8 B][8 C] … (d)              A: g = 0, 1; B: 3, 4; C: 6, 7, three bits each; 2 and 5: two bits above in A and B, one in C
//   IQ4_XS          (d)(scales_h)[1 scales_l][32 qs]             qs[4g+j] low nibble for j < 4, qs[4g+j−4] high nibble above
//   TQ2_0           [16 qs] … (d)                                as Q2_K, from line 0
//   TQ1_0           [12 of 5 digits][1 of 4 digits] … (d)        digit of line j (g < 5: digit g of line j; above: digits of lines 8 … 12)
//   IQ1 IQ2 IQ3     the file's granules in order … (d)           points of a lattice, signs and scales: granule_lattices.h
//                   per 64 columns (blocks 0 and 1)
//   Q8_0            (d0)(d1)[8 q0][8 q1], bytes xor 0x80         q[j]
//   Q4_0 IQ4_NL     (d0)(d1)[4 q0][4 q1]                         q[j] low nibble for j < 4, q[j−4] high nibble above
//   Q4_1            (d0)(d1)(m0)(m1)[4 q0][4 q1]                 the same
//   Q5_0 Q5_1       like Q4_0 Q4_1, [1 qh0][1 qh1] before q      the same, bit j of byte c of qh becomes bit 4 of column 4j + c
//   MXFP4           [4 q0][4 q1] … (e: 16 bytes each)            as Q4_0
//   NVFP4           [1 scales][8 q], one block                   of 16: q[2s + j % 2], low nibble for j < 2, high above
//                   per 128 columns
//   FP8 E4M3        [1 f32 scale][32 q]                          q[j]
//   F16 BF16        per 2 columns: [16 rows][2 columns]
//   F32             per column: [16 rows]
//
// "…" marks a 32-byte line (or one of 16 bytes) that would leave the next super-block unaligned: these d lines
// lie together at the panel's end. A, B, C of Q6_K and Q3_K are ql and qh, hmask and qs with their bits regrouped
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
