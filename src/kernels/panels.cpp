#include "kernels/panels.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/panel_forms.h"
#include "kernels/panel_regroup.h"

namespace liuli::kernels {
namespace {

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// ---- the granules form ----------------------------------------------------------------------------------

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

// Bits of a block between the file's planes and the panel's bytes, in place.
template <bool to_panel>
void regroup(Regrouping regrouping, uint8_t* block) {
  for_each_regrouping(regrouping, [&](auto how, TriplesAt at) {
    for (int i = 0; i < 32; i += 4) {
      LineTriple<uint32_t> t;
      std::memcpy(&t.a, block + at.a + i, 4);
      std::memcpy(&t.b, block + at.b + i, 4);
      std::memcpy(&t.c, block + at.c + i, 4);
      t = to_panel ? how.together(t) : how.apart(t);
      std::memcpy(block + at.a + i, &t.a, 4);
      std::memcpy(block + at.b + i, &t.b, 4);
      std::memcpy(block + at.c + i, &t.c, 4);
    }
  });
}

// Moves one field of one block; `to_panel` says in which direction.
template <bool to_panel, class Block, class Panel>
void move_field(const PanelField& field, Block* block, Panel* lines, int lane) {
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
    std::memcpy(&v, to_panel ? block + field.file + 4 * i : lines + 64 * field.step * i + 4 * lane, 4);
    if (field.kind == offset) v ^= 0x80808080u;
    if (field.kind == bits) v = to_panel ? gather_bits(v) : scatter_bits(v);
    if constexpr (to_panel)
      std::memcpy(lines + 64 * field.step * i + 4 * lane, &v, 4);
    else
      std::memcpy(block + field.file + 4 * i, &v, 4);
  }
}

// Blocks [begin, end) of one row between file form and lane `lane` of a panel.
template <bool to_panel, class Block, class Panel>
void move_blocks(const PanelForm& form, Block* blocks, Panel* panel, int lane, int64_t begin, int64_t end) {
  const auto move_fields = [&](auto* block, int64_t b) {
    Panel *head = panel + form.unit_at(b), *body = panel + form.body_at(b);
    const auto place = static_cast<int>(b % form.blocks_per_unit);
    for (int f = 0; f < form.n_fields; f++) {
      const PanelField& field = form.fields[f];
      Panel* lines = field.in_head() ? head + place * kPanelRows * field.bytes : body;
      move_field<to_panel>(field, block, lines + field.panel, lane);
    }
  };
  for (int64_t b = begin; b < end; b++, blocks += form.block_bytes) {
    if constexpr (to_panel) {
      uint8_t regrouped[kMaxFormBlock];
      std::memcpy(regrouped, blocks, static_cast<size_t>(form.block_bytes));
      regroup<true>(form.regrouping, regrouped);
      move_fields(regrouped, b);
    } else {
      move_fields(blocks, b);
      regroup<false>(form.regrouping, blocks);
    }
  }
}

template <DType type>
struct Granules {
  static constexpr const PanelForm& form = kPanelForms[panel_form_index(type)];
  static size_t bytes(int64_t k) noexcept { return static_cast<size_t>(form.bytes(k)); }
  static void pack_row(const uint8_t* row, uint8_t* panel, int lane, int64_t k) noexcept {
    move_blocks<true>(form, row, panel, lane, 0, k / form.block);
  }
  static void unpack_row(const uint8_t* panel, uint8_t* row, int lane, int64_t k) noexcept {
    move_blocks<false>(form, row, panel, lane, 0, k / form.block);
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
  if constexpr (panel_form_index(type) >= 0)
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
  if (const PanelForm* form = panel_form(type)) {
    move_blocks<false>(*form, blocks, panel, lane, begin / form->block, end / form->block);
  } else if (type == DType::f16 || type == DType::bf16) {
    Pairs::unpack(panel, blocks, lane, begin, end);
  } else {
    const uint8_t* row = panel + lane * rows_form_stride(type, k);
    std::memcpy(blocks, row + row_bytes(type, begin), static_cast<size_t>(row_bytes(type, end - begin)));
  }
}

}  // namespace liuli::kernels
