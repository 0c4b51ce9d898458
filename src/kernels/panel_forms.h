// How each block type's bytes stand in a panel, as data. Private to the files that permute them.
#pragma once
#include "kernels/panels.h"

namespace liuli::kernels {

enum class FieldKind : uint8_t {
  half,      // two bytes: a line of 32
  end_half,  // the same, in the section at the panel's end
  end_byte,  // one byte: a line of 16 in that section
  granules,  // four bytes at a time: lines of 64
  offset,    // granules with every byte's top bit flipped
  bits,      // one granule, bit 4j + c moved to 8c + j
};

struct PanelField {
  FieldKind kind;
  int file;   // offset in the file's block
  int panel;  // offset in the unit, for the unit's first block
  int bytes;
};

// What is done to a unit's lines after its fields have been moved (panel_regroup.h).
enum class Regrouping : uint8_t { none, six_bits, three_bits };

// A unit is the smallest stretch of columns whose lines fill whole 64-byte lines: a super-block, or two
// blocks of 32.
struct PanelForm {
  DType type;
  int block, block_bytes;
  int blocks_per_unit;
  int unit_bytes;  // without the line at the panel's end
  int end_bytes;   // of a unit
  int n_fields;
  PanelField fields[5];
  Regrouping regrouping = Regrouping::none;
};

using enum FieldKind;
inline constexpr PanelForm kPanelForms[] = {
    {DType::q4_k,
     256,
     144,
     1,
     2304,
     0,
     4,
     {{half, 0, 0, 2}, {half, 2, 32, 2}, {granules, 4, 64, 12}, {granules, 16, 256, 128}}},
    {DType::q5_k,
     256,
     176,
     1,
     2816,
     0,
     5,
     {{half, 0, 0, 2},
      {half, 2, 32, 2},
      {granules, 4, 64, 12},
      {granules, 16, 256, 32},
      {granules, 48, 768, 128}}},
    {DType::q6_k,
     256,
     210,
     1,
     3328,
     32,
     4,
     {{granules, 192, 0, 16}, {granules, 128, 256, 64}, {granules, 0, 1280, 128}, {end_half, 208, 0, 2}},
     Regrouping::six_bits},
    {DType::q2_k,
     256,
     84,
     1,
     1344,
     0,
     4,
     {{half, 80, 0, 2}, {half, 82, 32, 2}, {granules, 0, 64, 16}, {granules, 16, 320, 64}}},
    {DType::q3_k,
     256,
     110,
     1,
     1728,
     32,
     4,
     {{granules, 96, 0, 12}, {granules, 0, 192, 32}, {granules, 32, 704, 64}, {end_half, 108, 0, 2}},
     Regrouping::three_bits},
    {DType::iq4_xs,
     256,
     136,
     1,
     2176,
     0,
     4,
     {{half, 0, 0, 2}, {half, 2, 32, 2}, {granules, 4, 64, 4}, {granules, 8, 128, 128}}},
    {DType::q8_0, 32, 34, 2, 1088, 0, 2, {{half, 0, 0, 2}, {offset, 2, 64, 32}}},
    {DType::q4_0, 32, 18, 2, 576, 0, 2, {{half, 0, 0, 2}, {granules, 2, 64, 16}}},
    {DType::iq4_nl, 32, 18, 2, 576, 0, 2, {{half, 0, 0, 2}, {granules, 2, 64, 16}}},
    {DType::q4_1, 32, 20, 2, 640, 0, 3, {{half, 0, 0, 2}, {half, 2, 64, 2}, {granules, 4, 128, 16}}},
    {DType::q5_0, 32, 22, 2, 704, 0, 3, {{half, 0, 0, 2}, {bits, 2, 64, 4}, {granules, 6, 192, 16}}},
    {DType::q5_1,
     32,
     24,
     2,
     768,
     0,
     4,
     {{half, 0, 0, 2}, {half, 2, 64, 2}, {bits, 4, 128, 4}, {granules, 8, 256, 16}}},
    {DType::tq1_0, 256, 54, 1, 832, 32, 2, {{granules, 0, 0, 52}, {end_half, 52, 0, 2}}},
    {DType::tq2_0, 256, 66, 1, 1024, 32, 2, {{granules, 0, 0, 64}, {end_half, 64, 0, 2}}},
    {DType::iq1_s, 256, 50, 1, 768, 32, 2, {{end_half, 0, 0, 2}, {granules, 2, 0, 48}}},
    {DType::iq1_m, 256, 56, 1, 896, 0, 1, {{granules, 0, 0, 56}}},
    {DType::iq2_xxs, 256, 66, 1, 1024, 32, 2, {{end_half, 0, 0, 2}, {granules, 2, 0, 64}}},
    {DType::iq2_xs, 256, 74, 1, 1152, 32, 2, {{end_half, 0, 0, 2}, {granules, 2, 0, 72}}},
    {DType::iq2_s, 256, 82, 1, 1280, 32, 2, {{end_half, 0, 0, 2}, {granules, 2, 0, 80}}},
    {DType::iq3_xxs, 256, 98, 1, 1536, 32, 2, {{end_half, 0, 0, 2}, {granules, 2, 0, 96}}},
    {DType::iq3_s, 256, 110, 1, 1728, 32, 2, {{end_half, 0, 0, 2}, {granules, 2, 0, 108}}},
    {DType::mxfp4, 32, 17, 2, 512, 32, 2, {{end_byte, 0, 0, 1}, {granules, 1, 0, 16}}},
    {DType::nvfp4, 64, 36, 1, 576, 0, 1, {{granules, 0, 0, 36}}},
    {DType::f8_e4m3_b128, 128, 132, 1, 2112, 0, 1, {{granules, 0, 0, 132}}},
    {DType::f32, 1, 4, 1, 64, 0, 1, {{granules, 0, 0, 4}}},
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

/// Units of a row of k columns: plain F32 counts columns padded to kPanelK; block types count whole units.
constexpr int64_t units_of(const PanelForm& form, int64_t k) {
  const int64_t columns = form.block == 1 ? kPanelK : int64_t{form.block} * form.blocks_per_unit;
  return (k + columns - 1) / columns * columns / (int64_t{form.block} * form.blocks_per_unit);
}

}  // namespace liuli::kernels
