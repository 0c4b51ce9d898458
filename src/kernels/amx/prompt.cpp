// The prompt product by tdpbf16ps: one f32 accumulator per output takes tiles of 32 columns in ascending
// order.
//
// Up to 64 rows: the ring. One panel at a time, an accumulator tile per strip of 16 rows, B passes through 16
// KiB of L1 in two halves of 256 columns; while one half is multiplied the other can already be expanded.
// Nothing is spilled. Above: blocked. A block of column pairs (its sums stay in L2) → a chunk of K → a pair
// of panels (its B in L1) → strips of 32 rows, 2 × 2 tiles; the next pair is expanded piece by piece between
// the strips. Spilling an f32 is exact, so both give the same bits.
#include "kernels/amx/tiles.h"
#include "kernels/avx512/load_to_end.h"
#include "kernels/isa_tables.h"

namespace liuli::kernels {
namespace {

constexpr int kTileRows = 16, kTileK = 32, kTileValues = kTileRows * kTileK;
constexpr int kPieceTiles =
    8;  // tiles expanded by one call: 256 columns, the largest block of any weight type
constexpr int kChunkTiles = 16;               // tiles of a K chunk: 512 columns (1024 measured slower)
constexpr int kRingRows = 64;                 // rows up to which the ring is used
constexpr size_t kBlockSumBytes = 768 << 10;  // sums of a column block: most of a 1–2 MiB L2
constexpr int kSumValues = 4 * kTileRows * kPanelRows;  // of a strip of 32 rows × a pair of panels

int smaller(int a, int b) { return a < b ? a : b; }
int larger(int a, int b) { return a > b ? a : b; }

struct Product {
  const WeightKernels& weight;
  const uint8_t* panels;
  size_t panel_bytes;
  int panel_begin, panel_end;
  int64_t k;
  int groups;  // tiles over K
  const uint16_t* packed;
  int n_rows;
  float* y;
  ptrdiff_t ldy;
  uint16_t* b;
  float* sums;

  int tile_rows() const { return smaller(n_rows, kTileRows); }
  // The packed strip of 16 rows from `row`, at tile k0.
  const uint16_t* strip(int row, int k0) const {
    return packed + (ptrdiff_t(row) / kTileRows * groups + k0) * kTileValues;
  }
  void expand(int panel, int k0, int k1, uint16_t* out) const {
    weight.expand_bf16(panels + panel * panel_bytes, k, int64_t(k0) * kTileK, int64_t(k1) * kTileK, out);
  }
  float* at(int row, int panel) const { return y + row * ldy + ptrdiff_t(panel) * kPanelRows; }
};

// A tile of sums to rows [row, …) of y: past the last row there is no memory to write to.
template <int T>
void store_rows(const Product& p, int row, int panel) {
  float* out = p.at(row, panel);
  const int rows = smaller(p.n_rows - row, kTileRows);
  if (rows == p.tile_rows()) return tile_store<T>(out, p.ldy * sizeof(float));
  alignas(64) float sums[kTileRows][kPanelRows];
  tile_store<T>(sums, sizeof sums[0]);
  for (int r = 0; r < rows; r++) __builtin_memcpy(out + r * p.ldy, sums[r], sizeof sums[r]);
}

// ---- ring -----------------------------------------------------------------------------------------------

// Where the expansion is: it runs one piece ahead of the multiplication, across panels.
struct RingHead {
  int panel, k0, half = 0;
};

void expand_piece(const Product& p, RingHead& head) {
  if (head.panel >= p.panel_end) return;
  const int k1 = smaller(head.k0 + kPieceTiles, p.groups);
  p.expand(head.panel, head.k0, k1, p.b + head.half * kPieceTiles * kTileValues);
  head.half ^= 1;
  head.k0 = k1;
  if (k1 == p.groups) head.panel++, head.k0 = 0;
}

// Accumulators 0 … 3 for up to four strips; weights in 4, activations in 6 and 7 by turns.
template <int kStrips>
void multiply_piece(const Product& p, int k0, int k1, const uint16_t* b) {
  for (int k = k0; k < k1; k++, b += kTileValues) {
    tile_load<4>(b, 64);
    tile_stream_load<6>(p.strip(0, k), 64);
    tile_dot_bf16<0, 6, 4>();
    if constexpr (kStrips > 1) tile_stream_load<7>(p.strip(16, k), 64), tile_dot_bf16<1, 7, 4>();
    if constexpr (kStrips > 2) tile_stream_load<6>(p.strip(32, k), 64), tile_dot_bf16<2, 6, 4>();
    if constexpr (kStrips > 3) tile_stream_load<7>(p.strip(48, k), 64), tile_dot_bf16<3, 7, 4>();
  }
}

template <int kStrips>
void multiply_ring(const Product& p) {
  load_tile_config(make_tile_config(p.tile_rows(), 4, 5));
  RingHead head{p.panel_begin, 0};
  expand_piece(p, head);
  int half = 0;
  for (int panel = p.panel_begin; panel < p.panel_end; panel++) {
    tile_zero<0>(), tile_zero<1>(), tile_zero<2>(), tile_zero<3>();
    for (int k0 = 0; k0 < p.groups; k0 += kPieceTiles, half ^= 1) {
      expand_piece(p, head);
      multiply_piece<kStrips>(p, k0, smaller(k0 + kPieceTiles, p.groups),
                              p.b + half * kPieceTiles * kTileValues);
    }
    store_rows<0>(p, 0, panel);
    if constexpr (kStrips > 1) store_rows<1>(p, 16, panel);
    if constexpr (kStrips > 2) store_rows<2>(p, 32, panel);
    if constexpr (kStrips > 3) store_rows<3>(p, 48, panel);
  }
  release_tiles();
}

// ---- blocked --------------------------------------------------------------------------------------------

constexpr int kHalfB = kChunkTiles * kTileValues;  // one panel's chunk of B
constexpr int kPairB = 2 * kHalfB;

int strips_of_32(int n_rows) { return (n_rows + 31) / 32; }
int pairs_per_block(int n_rows) {
  return larger(1, static_cast<int>(kBlockSumBytes / (strips_of_32(n_rows) * kSumValues * sizeof(float))));
}

// A pair of panels over one chunk of K.
struct Step {
  int pair = 0, k0 = 0;
};

// The next step: pairs of the block, then chunks of K, then blocks. False at the end.
bool advance(const Product& p, int pairs, Step& step) {
  const int block = pairs_per_block(p.n_rows), begin = step.pair / block * block;
  if (++step.pair < smaller(pairs, begin + block)) return true;
  step.k0 += kChunkTiles;
  if (step.k0 < p.groups) {
    step.pair = begin;
    return true;
  }
  step.k0 = 0;
  return step.pair < pairs;
}

// Expands a step's B in pieces of 256 columns, first one panel's, then the other's (the last panel twice if
// it is alone).
struct PairExpansion {
  const Product& p;
  Step step;
  uint16_t* b;
  int tiles, pieces, done = 0;

  PairExpansion(const Product& product, const Step& s, uint16_t* out)
      : p(product),
        step(s),
        b(out),
        tiles(smaller(kChunkTiles, product.groups - s.k0)),
        pieces(2 * ((tiles + kPieceTiles - 1) / kPieceTiles)) {}

  void expand_up_to(int count) {
    for (; done < count; done++) {
      const int half = done >= pieces / 2, piece = done - half * (pieces / 2), k0 = piece * kPieceTiles;
      const int panel = smaller(p.panel_begin + 2 * step.pair + half, p.panel_end - 1);
      p.expand(panel, step.k0 + k0, step.k0 + smaller(k0 + kPieceTiles, tiles),
               b + half * kHalfB + k0 * kTileValues);
    }
  }
};

void load_sums(const float* c, bool two) {
  tile_load<4>(c, 64), tile_load<5>(c + 256, 64);
  if (two) tile_load<6>(c + 512, 64), tile_load<7>(c + 768, 64);
}

void store_sums(float* c, bool two) {
  tile_store<4>(c, 64), tile_store<5>(c + 256, 64);
  if (two) tile_store<6>(c + 512, 64), tile_store<7>(c + 768, 64);
}

void store_outputs(const Product& p, int row, int panel, bool two) {
  const bool second = panel + 1 < p.panel_end;
  store_rows<4>(p, row, panel);
  if (second) store_rows<5>(p, row, panel + 1);
  if (two) store_rows<6>(p, row + 16, panel);
  if (two && second) store_rows<7>(p, row + 16, panel + 1);
}

// 32 rows from `row` times the pair in b. Activations stream past L1; the next strip's sums are fetched
// meanwhile.
template <bool kTwo>
void multiply_tiles(const Product& p, const Step& step, int row, const uint16_t* b, const float* next_sums) {
  const int tiles = smaller(kChunkTiles, p.groups - step.k0);
  const uint16_t *a0 = p.strip(row, step.k0), *a1 = kTwo ? p.strip(row + 16, step.k0) : a0;
  for (int k = 0; k < tiles; k++) {
    for (int i = 0; i < 4; i++) __builtin_prefetch(next_sums + 16 * ((4 * k + i) & 63));
    tile_stream_load<0>(a0 + k * kTileValues, 64);
    tile_load<2>(b + k * kTileValues, 64);
    tile_dot_bf16<4, 0, 2>();
    tile_load<3>(b + kHalfB + k * kTileValues, 64);
    tile_dot_bf16<5, 0, 3>();
    if constexpr (kTwo) {
      tile_stream_load<1>(a1 + k * kTileValues, 64);
      tile_dot_bf16<6, 1, 2>();
      tile_dot_bf16<7, 1, 3>();
    }
  }
}

void multiply_strip(const Product& p, const Step& step, int strip, const uint16_t* b) {
  const int row = 32 * strip, slot = step.pair % pairs_per_block(p.n_rows) * strips_of_32(p.n_rows) + strip;
  const bool two = row + 16 < p.n_rows;
  float* c = p.sums + ptrdiff_t(slot) * kSumValues;
  if (step.k0 == 0) {
    tile_zero<4>(), tile_zero<5>(), tile_zero<6>(), tile_zero<7>();
  } else {
    load_sums(c, two);
  }
  two ? multiply_tiles<true>(p, step, row, b, c + kSumValues)
      : multiply_tiles<false>(p, step, row, b, c + kSumValues);
  if (step.k0 + kChunkTiles >= p.groups) {
    store_outputs(p, row, p.panel_begin + 2 * step.pair, two);
  } else {
    store_sums(c, two);
  }
}

void multiply_blocked(const Product& p) {
  load_tile_config(make_tile_config(p.tile_rows(), 2, 3));
  const int pairs = (p.panel_end - p.panel_begin + 1) / 2, strips = strips_of_32(p.n_rows);
  uint16_t *now = p.b, *then = p.b + kPairB;
  Step step;
  PairExpansion first(p, step, now);
  first.expand_up_to(first.pieces);
  for (bool more = pairs > 0; more;) {
    Step next = step;
    more = advance(p, pairs, next);
    PairExpansion expansion(p, more ? next : step, then);
    for (int strip = 0; strip < strips; strip++) {
      multiply_strip(p, step, strip, now);
      if (more) expansion.expand_up_to(expansion.pieces * (strip + 1) / strips);
    }
    step = next;
    uint16_t* swap = now;
    now = then;
    then = swap;
  }
  release_tiles();
}

// ---- the table ------------------------------------------------------------------------------------------

int tiles_over(int64_t k) { return static_cast<int>((k + kTileK - 1) / kTileK); }

size_t packed_bytes(int n_rows, int64_t k) noexcept {
  return sizeof(uint16_t) * kTileValues * ((n_rows + 15) / 16) * static_cast<size_t>(tiles_over(k));
}

size_t scratch_bytes(int n_rows, int64_t k) noexcept {
  if (n_rows <= kRingRows) return sizeof(uint16_t) * 2 * kPieceTiles * kTileValues;
  const size_t b = sizeof(uint16_t) * 2 * kPairB;
  if (tiles_over(k) <= kChunkTiles) return b;
  return b + sizeof(float) * kSumValues * pairs_per_block(n_rows) * strips_of_32(n_rows);
}

void pack_strip(const float* x, ptrdiff_t ldx, int n_rows, int64_t k, int strip, void* packed) noexcept {
  const int first = strip * kTileRows, groups = tiles_over(k);
  auto* out = static_cast<uint16_t*>(packed) + ptrdiff_t(strip) * groups * kTileValues;
  for (int r = 0; r < kTileRows; r++) {
    const float* row = x + (first + r) * ldx;
    for (int g = 0; g < groups; g++) {
      __m512i values = _mm512_setzero_si512();
      if (first + r < n_rows) {
        const int64_t i = int64_t(g) * kTileK;
        values = (__m512i)_mm512_cvtne2ps_pbh(load_to_end(row, i + 16, k), load_to_end(row, i, k));
      }
      _mm512_storeu_si512(out + ptrdiff_t(g) * kTileValues + r * kTileK, values);
    }
  }
}

void multiply(const WeightKernels& weight, const uint8_t* panels, size_t panel_bytes, int panel_begin,
              int panel_end, int64_t k, const void* packed, int n_rows, float* y, ptrdiff_t ldy,
              void* scratch) noexcept {
  if (panel_begin >= panel_end || n_rows <= 0) return;
  auto* b = static_cast<uint16_t*>(scratch);
  const Product p{weight,
                  panels,
                  panel_bytes,
                  panel_begin,
                  panel_end,
                  k,
                  tiles_over(k),
                  static_cast<const uint16_t*>(packed),
                  n_rows,
                  y,
                  ldy,
                  b,
                  reinterpret_cast<float*>(b + 2 * kPairB)};
  if (n_rows > kRingRows) return multiply_blocked(p);
  switch ((n_rows + 15) / 16) {
    case 1:
      return multiply_ring<1>(p);
    case 2:
      return multiply_ring<2>(p);
    case 3:
      return multiply_ring<3>(p);
    default:
      return multiply_ring<4>(p);
  }
}

}  // namespace

const PromptKernels* LIULI_AMX_NAME(prompt)() noexcept {
  static constexpr PromptKernels kernels{"bf16 tiles, AMX", &packed_bytes, &scratch_bytes,
                                         &pack_strip,       &multiply,     true};
  return &kernels;
}

}  // namespace liuli::kernels
