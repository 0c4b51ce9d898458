#include "kernels/panels.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace liuli::kernels {
namespace {

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// ---- the granules form ----------------------------------------------------------------------------------

enum class Kind {
  half,      // two bytes: a line of 32
  end_half,  // the same, in the section at the panel's end
  end_byte,  // one byte: a line of 16 in that section
  granules,  // four bytes at a time: lines of 64
  offset,    // granules with every byte's top bit flipped
  bits,      // one granule, bit 4j + c moved to 8c + j
};

struct Field {
  Kind kind;
  int file;   // offset in the file's block
  int panel;  // offset in the unit, for the unit's first block
  int bytes;
};

// A unit is the smallest stretch of columns whose lines fill whole 64-byte lines: a super-block, or two
// blocks of 32.
struct Form {
  DType type;
  int block, block_bytes;
  int blocks_per_unit;
  int unit_bytes;  // without the line at the panel's end
  int end_bytes;   // of a unit
  int n_fields;
  Field fields[5];
};

using enum Kind;
constexpr Form kForms[] = {
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
     {{granules, 192, 0, 16}, {granules, 128, 256, 64}, {granules, 0, 1280, 128}, {end_half, 208, 0, 2}}},
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
     {{granules, 96, 0, 12}, {granules, 0, 192, 32}, {granules, 32, 704, 64}, {end_half, 108, 0, 2}}},
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

constexpr const Form* form_of(DType type) {
  for (const Form& form : kForms)
    if (form.type == type) return &form;
  return nullptr;
}

uint32_t gather_bits(uint32_t file) {
  uint32_t panel = 0;
  for (int e = 0; e < 32; e++) panel |= ((file >> e) & 1u) << (8 * (e % 4) + e / 4);
  return panel;
}
uint32_t scatter_bits(uint32_t panel) {
  uint32_t file = 0;
  for (int e = 0; e < 32; e++) file |= ((panel >> (8 * (e % 4) + e / 4)) & 1u) << e;
  return file;
}

// Moves one field of one block; `to_panel` says in which direction.
template <bool to_panel, class Block, class Panel>
void move_field(const Field& field, Block* block, Panel* lines, int lane) {
  if (field.bytes < 4) {
    const auto n = static_cast<size_t>(field.bytes);
    if constexpr (to_panel)
      std::memcpy(lines + field.bytes * lane, block + field.file, n);
    else
      std::memcpy(block + field.file, lines + field.bytes * lane, n);
    return;
  }
  for (int i = 0; i < field.bytes / 4; i++) {
    uint32_t v;
    std::memcpy(&v, to_panel ? block + field.file + 4 * i : lines + 64 * i + 4 * lane, 4);
    if (field.kind == offset) v ^= 0x80808080u;
    if (field.kind == bits) v = to_panel ? gather_bits(v) : scatter_bits(v);
    if constexpr (to_panel)
      std::memcpy(lines + 64 * i + 4 * lane, &v, 4);
    else
      std::memcpy(block + field.file + 4 * i, &v, 4);
  }
}

size_t units(const Form& form, int64_t k) {
  // Plain F32 counts columns padded to kPanelK; block types count whole units.
  const int64_t columns = form.block == 1 ? kPanelK : int64_t{form.block} * form.blocks_per_unit;
  return round_up(static_cast<size_t>(k), static_cast<size_t>(columns)) /
         static_cast<size_t>(form.block * form.blocks_per_unit);
}

// Blocks [begin, end) of one row between file form and panel.
template <bool to_panel, class Block, class Panel>
void move_blocks(const Form& form, Block* block, Panel* panel, int lane, int64_t k, int64_t begin,
                 int64_t end) {
  Panel* end_section = panel + units(form, k) * static_cast<size_t>(form.unit_bytes);
  for (int64_t b = begin; b < end; b++, block += form.block_bytes) {
    Panel* unit = panel + b / form.blocks_per_unit * form.unit_bytes;
    const int second = static_cast<int>(b % form.blocks_per_unit);
    for (int f = 0; f < form.n_fields; f++) {
      const Field& field = form.fields[f];
      const bool at_end = field.kind == end_half || field.kind == end_byte;
      Panel* lines = at_end ? end_section + b / form.blocks_per_unit * form.end_bytes : unit + field.panel;
      lines += second * 16 * field.bytes;
      move_field<to_panel>(field, block, lines, lane);
    }
  }
}

template <DType type>
struct Granules {
  static constexpr const Form& form = *form_of(type);
  static size_t bytes(int64_t k) noexcept {
    return round_up(units(form, k) * static_cast<size_t>(form.unit_bytes + form.end_bytes), 64);
  }
  static void pack_row(const uint8_t* row, uint8_t* panel, int lane, int64_t k) noexcept {
    move_blocks<true>(form, row, panel, lane, k, 0, k / form.block);
  }
  static void unpack_row(const uint8_t* panel, uint8_t* row, int lane, int64_t k) noexcept {
    move_blocks<false>(form, row, panel, lane, k, 0, k / form.block);
  }
};

// ---- pairs of 16-bit floats -----------------------------------------------------------------------------

struct Pairs {
  static size_t bytes(int64_t k) noexcept { return round_up(static_cast<size_t>(k), kPanelK) * 32; }
  static size_t place(int lane, int64_t column) {
    return static_cast<size_t>(column / 2 * 64 + 4 * lane + column % 2 * 2);
  }
  static void pack_row(const uint8_t* row, uint8_t* panel, int lane, int64_t k) noexcept {
    for (int64_t i = 0; i < k; i++) std::memcpy(panel + place(lane, i), row + 2 * i, 2);
  }
  static void unpack(const uint8_t* panel, uint8_t* row, int lane, int64_t begin, int64_t end) noexcept {
    for (int64_t i = begin; i < end; i++, row += 2) std::memcpy(row, panel + place(lane, i), 2);
  }
  static void unpack_row(const uint8_t* panel, uint8_t* row, int lane, int64_t k) noexcept {
    unpack(panel, row, lane, 0, k);
  }
};

// ---- the rows form --------------------------------------------------------------------------------------

template <DType type>
struct RowsForm {
  static size_t bytes(int64_t k) noexcept {
    return static_cast<size_t>(kPanelRows * rows_form_stride(type, k));
  }
  static void pack_row(const uint8_t* row, uint8_t* panel, int lane, int64_t k) noexcept {
    std::memcpy(panel + lane * rows_form_stride(type, k), row, static_cast<size_t>(row_bytes(type, k)));
  }
  static void unpack_row(const uint8_t* panel, uint8_t* row, int lane, int64_t k) noexcept {
    std::memcpy(row, panel + lane * rows_form_stride(type, k), static_cast<size_t>(row_bytes(type, k)));
  }
};

template <int id>
constexpr PanelLayout layout() {
  constexpr DType type = static_cast<DType>(id);
  if constexpr (form_of(type) != nullptr)
    return {"granules", Granules<type>::bytes, Granules<type>::pack_row, Granules<type>::unpack_row};
  else if constexpr (type == DType::f16 || type == DType::bf16)
    return {"granules", Pairs::bytes, Pairs::pack_row, Pairs::unpack_row};
  else
    return {"rows", RowsForm<type>::bytes, RowsForm<type>::pack_row, RowsForm<type>::unpack_row};
}
template <int... ids>
constexpr std::array<PanelLayout, sizeof...(ids)> layouts(std::integer_sequence<int, ids...>) {
  return {layout<ids>()...};
}
constexpr auto kLayouts = layouts(std::make_integer_sequence<int, kDTypeCount>{});

}  // namespace

const PanelLayout& panel_layout(DType type) noexcept { return kLayouts[static_cast<size_t>(type)]; }

int64_t rows_form_stride(DType type, int64_t k) noexcept { return (row_bytes(type, k) + 3) / 4 * 4; }

void unpack_chunk(DType type, const uint8_t* panel, int64_t k, int64_t chunk, int lane,
                  uint8_t* blocks) noexcept {
  const int64_t begin = chunk * kChunk, end = std::min(k, begin + kChunk);
  if (const Form* form = form_of(type)) {
    move_blocks<false>(*form, blocks, panel, lane, k, begin / form->block, end / form->block);
  } else if (type == DType::f16 || type == DType::bf16) {
    Pairs::unpack(panel, blocks, lane, begin, end);
  } else {
    const uint8_t* row = panel + lane * rows_form_stride(type, k);
    std::memcpy(blocks, row + row_bytes(type, begin), static_cast<size_t>(row_bytes(type, end - begin)));
  }
}

}  // namespace liuli::kernels
