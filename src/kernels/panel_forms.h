// How each block type's bytes stand in a panel, as data. Private to the files that permute them.
#pragma once
#include "kernels/panels.h"

namespace liuli::kernels {

enum class FieldKind : uint8_t {
  half,      // two bytes: 32 of the head
  byte,      // one byte: 16 of the head
  granules,  // four bytes at a time: lines of the body
  offset,    // granules with every byte's top bit flipped
  bits,      // one granule, bit 4j + c moved to 8c + j
};

struct PanelField {
  FieldKind kind;
  int file;   // offset in the file's block
  int panel;  // offset in the unit's head (its first block's) or in the block's body
  int bytes;
  int step = 1;  // lines from one granule to the next

  constexpr bool in_head() const { return kind == FieldKind::half || kind == FieldKind::byte; }
};

// What is done to a block's lines after its fields have been moved (panel_regroup.h).
enum class Regrouping : uint8_t { none, six_bits, three_bits };

// Blocks whose small fields together fill whole lines make a unit: a head with these fields, block by block, then the body of
// one block after the other. A row's last unit ends with its last block.
struct PanelForm {
  DType type;
  int block, block_bytes;
  int blocks_per_unit, head_bytes;
  int body_bytes;  // of one block
  int n_fields;
  PanelField fields[6];
  Regrouping regrouping = Regrouping::none;

  constexpr int unit_bytes() const { return head_bytes + blocks_per_unit * body_bytes; }
  /// Where block b's unit begins, and its body.
  constexpr int64_t unit_at(int64_t b) const { return b / blocks_per_unit * unit_bytes(); }
  constexpr int64_t body_at(int64_t b) const {
    return unit_at(b) + head_bytes + b % blocks_per_unit * body_bytes;
  }
  /// Blocks of a row of k columns; plain F32 counts columns padded to kPanelK.
  constexpr int64_t blocks(int64_t k) const {
    return block == 1 ? (k + kPanelK - 1) / kPanelK * kPanelK : k / block;
  }
  constexpr int64_t bytes(int64_t k) const { return k == 0 ? 0 : body_at(blocks(k) - 1) + body_bytes; }
};

// Fields are in the order in which decoding first touches them: memory is read upwards, line by line, without a gap.
using enum FieldKind;
inline constexpr PanelForm kPanelForms[] = {
    {DType::q4_k,
     256,
     144,
     1,
     64,
     2240,
     4,
     {{half, 0, 0, 2}, {half, 2, 32, 2}, {granules, 4, 0, 12}, {granules, 16, 192, 128}}},
    {DType::q5_k,
     256,
     176,
     1,
     64,
     2752,
     6,
     {{half, 0, 0, 2},
      {half, 2, 32, 2},
      {granules, 4, 0, 12},
      {granules, 16, 192, 32, 2},
      {granules, 48, 256, 32, 2},
      {granules, 80, 1216, 96}}},
    {DType::q6_k,
     256,
     210,
     2,
     64,
     3328,
     6,
     {{half, 208, 0, 2},
      {granules, 192, 0, 16},
      {granules, 0, 256, 64},
      {granules, 128, 1280, 32},
      {granules, 64, 1792, 64},
      {granules, 160, 2816, 32}},
     Regrouping::six_bits},
    {DType::q2_k,
     256,
     84,
     1,
     64,
     1280,
     4,
     {{half, 80, 0, 2}, {half, 82, 32, 2}, {granules, 0, 0, 16}, {granules, 16, 256, 64}}},
    {DType::q3_k,
     256,
     110,
     2,
     64,
     1728,
     5,
     {{half, 108, 0, 2},
      {granules, 96, 0, 12},
      {granules, 0, 192, 32},
      {granules, 64, 704, 32},
      {granules, 32, 1216, 32}},
     Regrouping::three_bits},
    {DType::iq4_xs,
     256,
     136,
     1,
     64,
     2112,
     4,
     {{half, 0, 0, 2}, {half, 2, 32, 2}, {granules, 4, 0, 4}, {granules, 8, 64, 128}}},
    {DType::q8_0, 32, 34, 2, 64, 512, 2, {{half, 0, 0, 2}, {offset, 2, 0, 32}}},
    {DType::q4_0, 32, 18, 2, 64, 256, 2, {{half, 0, 0, 2}, {granules, 2, 0, 16}}},
    {DType::iq4_nl, 32, 18, 2, 64, 256, 2, {{half, 0, 0, 2}, {granules, 2, 0, 16}}},
    {DType::q4_1, 32, 20, 2, 128, 256, 3, {{half, 0, 0, 2}, {half, 2, 64, 2}, {granules, 4, 0, 16}}},
    {DType::q5_0, 32, 22, 2, 64, 320, 3, {{half, 0, 0, 2}, {bits, 2, 0, 4}, {granules, 6, 64, 16}}},
    {DType::q5_1,
     32,
     24,
     2,
     128,
     320,
     4,
     {{half, 0, 0, 2}, {half, 2, 64, 2}, {bits, 4, 0, 4}, {granules, 8, 64, 16}}},
    {DType::tq1_0, 256, 54, 2, 64, 832, 2, {{half, 52, 0, 2}, {granules, 0, 0, 52}}},
    {DType::tq2_0, 256, 66, 2, 64, 1024, 2, {{half, 64, 0, 2}, {granules, 0, 0, 64}}},
    {DType::iq1_s, 256, 50, 2, 64, 768, 2, {{half, 0, 0, 2}, {granules, 2, 0, 48}}},
    {DType::iq1_m, 256, 56, 1, 0, 896, 1, {{granules, 0, 0, 56}}},
    {DType::iq2_xxs, 256, 66, 2, 64, 1024, 2, {{half, 0, 0, 2}, {granules, 2, 0, 64}}},
    {DType::iq2_xs, 256, 74, 2, 64, 1152, 2, {{half, 0, 0, 2}, {granules, 2, 0, 72}}},
    {DType::iq2_s, 256, 82, 2, 64, 1280, 2, {{half, 0, 0, 2}, {granules, 2, 0, 80}}},
    {DType::iq3_xxs, 256, 98, 2, 64, 1536, 2, {{half, 0, 0, 2}, {granules, 2, 0, 96}}},
    {DType::iq3_s, 256, 110, 2, 64, 1728, 2, {{half, 0, 0, 2}, {granules, 2, 0, 108}}},
    {DType::mxfp4, 32, 17, 4, 64, 256, 2, {{byte, 0, 0, 1}, {granules, 1, 0, 16}}},
    {DType::nvfp4, 64, 36, 1, 0, 576, 1, {{granules, 0, 0, 36}}},
    {DType::f8_e4m3_b128, 128, 132, 1, 0, 2112, 1, {{granules, 0, 0, 132}}},
    {DType::f32, 1, 4, 1, 0, 64, 1, {{granules, 0, 0, 4}}},
};

/// Bytes of the largest block.
inline constexpr int kMaxFormBlock = [] {
  int most = 0;
  for (const PanelForm& form : kPanelForms) most = form.block_bytes > most ? form.block_bytes : most;
  return most;
}();

/// Where a type of granules stands in kPanelForms, or −1 (16-bit floats: pairs; integers: rows). An index, because to GCC's
/// undefined-behaviour sanitizer a pointer compared with null is no constant.
constexpr int panel_form_index(DType type) {
  int index = 0;
  for (const PanelForm& form : kPanelForms) {
    if (form.type == type) return index;
    index++;
  }
  return -1;
}

/// The form of a type of granules, or null.
constexpr const PanelForm* panel_form(DType type) {
  const int index = panel_form_index(type);
  return index < 0 ? nullptr : &kPanelForms[index];
}

}  // namespace liuli::kernels
