// Sixteen rows into a panel at once: granules are transposed four rows by four in registers of 128 bits, which every
// machine has. pack_row moves four bytes at a time, about 1 GB/s; this is bound by memory.
#include <cstring>
#include <utility>

#include "kernels/panel_forms.h"
#include "kernels/panel_regroup.h"
#include "kernels/panels.h"

namespace liuli::kernels {
namespace {

using Quad = uint32_t __attribute__((vector_size(16)));

Quad load(const uint8_t* p) {
  Quad q;
  std::memcpy(&q, p, sizeof q);
  return q;
}
void store(uint8_t* p, Quad q) { std::memcpy(p, &q, sizeof q); }

struct AsStored {
  Quad operator()(Quad q) const { return q; }
};
struct TopBitFlipped {
  Quad operator()(Quad q) const { return q ^ 0x80808080u; }
};

// Four granules of four rows: rows[r] + at becomes lane r of four lines, `step` lines apart.
template <int step, class Change>
void transpose_4x4(const uint8_t* const* rows, int64_t at, uint8_t* lines, Change change) {
  const Quad a = load(rows[0] + at), b = load(rows[1] + at), c = load(rows[2] + at), d = load(rows[3] + at);
  const Quad ab01 = __builtin_shufflevector(a, b, 0, 4, 1, 5),
             ab23 = __builtin_shufflevector(a, b, 2, 6, 3, 7),
             cd01 = __builtin_shufflevector(c, d, 0, 4, 1, 5),
             cd23 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store(lines, change(__builtin_shufflevector(ab01, cd01, 0, 1, 4, 5)));
  store(lines + 64 * step, change(__builtin_shufflevector(ab01, cd01, 2, 3, 6, 7)));
  store(lines + 128 * step, change(__builtin_shufflevector(ab23, cd23, 0, 1, 4, 5)));
  store(lines + 192 * step, change(__builtin_shufflevector(ab23, cd23, 2, 3, 6, 7)));
}

// A granule of each of four rows.
Quad gather(const uint8_t* const* rows, int64_t at) {
  Quad q;
  for (int lane = 0; lane < 4; lane++) {
    uint32_t granule;
    std::memcpy(&granule, rows[lane] + at, sizeof granule);
    q[lane] = granule;
  }
  return q;
}

// n granules of every row, from rows[…] + at on, into n lines, `step` lines apart.
template <int step = 1, class Change>
void move_granules(const uint8_t* const* rows, int64_t at, int64_t n, uint8_t* lines, Change change) {
  const int64_t fours = n / 4;
  for (int64_t i = 0; i < fours; i++)
    for (int lane = 0; lane < kPanelRows; lane += 4)
      transpose_4x4<step>(rows + lane, at + 16 * i, lines + 256 * step * i + 4 * lane, change);
  at += 16 * fours;
  lines += 256 * step * fours;
  for (int i = 0; i < static_cast<int>(n % 4); i++)
    for (int lane = 0; lane < kPanelRows; lane += 4)
      store(lines + 64 * step * i + 4 * lane, change(gather(rows + lane, at + 4 * i)));
}

// One or two bytes of every row, side by side.
template <int bytes>
void move_small(const uint8_t* const* rows, int64_t at, uint8_t* line) {
  for (int lane = 0; lane < kPanelRows; lane++) std::memcpy(line + bytes * lane, rows[lane] + at, bytes);
}

// Swaps bits a and b of every bit's own number, a > b.
template <int a, int b>
Quad swap_index_bits(Quad x) {
  constexpr int shift = (1 << a) - (1 << b);
  constexpr uint32_t mask = [] {
    uint32_t m = 0;
    for (uint32_t i = 0; i < 32; i++) m |= ((i >> b & 1u) & ~(i >> a & 1u)) << i;
    return m;
  }();
  const Quad t = ((x >> shift) ^ x) & mask;
  return x ^ t ^ (t << shift);
}

// Bit 4j + c to 8c + j: a bit's number j2 j1 j0 c1 c0 becomes c1 c0 j2 j1 j0.
struct BitsMoved {
  Quad operator()(Quad q) const {
    q = swap_index_bits<3, 0>(swap_index_bits<4, 1>(q));
    return swap_index_bits<1, 0>(swap_index_bits<2, 1>(q));
  }
};

template <DType type>
struct Packing {
  static constexpr const PanelForm& form = kPanelForms[panel_form_index(type)];

  template <int f>
  static void move_field(const uint8_t* const* rows, int64_t at, uint8_t* head, uint8_t* body) {
    constexpr PanelField field = form.fields[f];
    at += field.file;
    if constexpr (field.in_head())
      move_small<field.bytes>(rows, at, head + field.panel);
    else if constexpr (field.kind == bits)
      move_granules<field.step>(rows, at, field.bytes / 4, body + field.panel, BitsMoved{});
    else if constexpr (field.kind == offset)
      move_granules<field.step>(rows, at, field.bytes / 4, body + field.panel, TopBitFlipped{});
    else
      move_granules<field.step>(rows, at, field.bytes / 4, body + field.panel, AsStored{});
  }

  // `place`: which block of its unit.
  template <int... f>
  static void move_block(const uint8_t* const* rows, int64_t at, uint8_t* head, uint8_t* body, int place,
                         std::integer_sequence<int, f...>) {
    (move_field<f>(rows, at, head + place * kPanelRows * form.fields[f].bytes, body), ...);
  }

  // Where the granule at `offset` of the file's block has its line.
  static constexpr int line_of(int offset) {
    for (const PanelField& field : form.fields)
      if (field.file <= offset && offset < field.file + field.bytes)
        return field.panel + kPanelRows * (offset - field.file);
    return -1;
  }

  static void regroup(uint8_t* body) {
    for_each_regrouping(form.regrouping, [&](auto how, TriplesAt at) {
      uint8_t *a = body + line_of(at.a), *b = body + line_of(at.b), *c = body + line_of(at.c);
      for (int i = 0; i < 8 * 64; i += 16) {
        const LineTriple<Quad> t = how.together(LineTriple<Quad>{load(a + i), load(b + i), load(c + i)});
        store(a + i, t.a);
        store(b + i, t.b);
        store(c + i, t.c);
      }
    });
  }

  static void pack(const uint8_t* const* rows, uint8_t* panel, int64_t k) {
    for (int64_t b = 0; b < k / form.block; b++) {
      uint8_t* body = panel + form.body_at(b);
      move_block(rows, b * form.block_bytes, panel + form.unit_at(b), body,
                 static_cast<int>(b % form.blocks_per_unit),
                 std::make_integer_sequence<int, form.n_fields>{});
      regroup(body);
    }
  }
};

// A 16-bit float is half a granule: of an odd number of columns the last one is moved by itself.
void pack_pairs(const uint8_t* const* rows, uint8_t* panel, int64_t k) {
  move_granules(rows, 0, k / 2, panel, AsStored{});
  if (k % 2 == 0) return;
  for (int lane = 0; lane < kPanelRows; lane++)
    std::memcpy(panel + k / 2 * 64 + 4 * lane, rows[lane] + 2 * (k - 1), 2);
}

void pack_lanes(DType type, const uint8_t* const* rows, uint8_t* panel, int64_t k) {
  for (int lane = 0; lane < kPanelRows; lane++) panel_layout(type).pack_row(rows[lane], panel, lane, k);
}

template <int id>
void pack_type(const uint8_t* const* rows, uint8_t* panel, int64_t k) {
  constexpr auto type = static_cast<DType>(id);
  if constexpr (type == DType::f32)
    move_granules(rows, 0, k, panel, AsStored{});
  else if constexpr (type == DType::f16 || type == DType::bf16)
    pack_pairs(rows, panel, k);
  else if constexpr (panel_form_index(type) >= 0)
    Packing<type>::pack(rows, panel, k);
  else
    pack_lanes(type, rows, panel, k);
}

using Pack = void (*)(const uint8_t* const* rows, uint8_t* panel, int64_t k);
template <int... ids>
constexpr Pack pack_of(int id, std::integer_sequence<int, ids...>) {
  constexpr Pack functions[] = {pack_type<ids>...};
  return functions[id];
}

}  // namespace

void pack_rows(DType type, const uint8_t* const* rows, uint8_t* panel, int64_t k) noexcept {
  pack_of(static_cast<int>(type), std::make_integer_sequence<int, kDTypeCount>{})(rows, panel, k);
}

}  // namespace liuli::kernels
