// Attention over pages of 64 positions, shared by every level. Private: each ISA file includes it once, and everything
// lives in an anonymous namespace, so that no copy compiled with wider instructions leaks to other files.
//
// A unit is one query: position i and head g of the group, u = i · group + g. Units are taken 64 at a time,
// so the heads of a group share each page that comes into the cache. Every unit walks blocks of 256
// positions, aligned to absolute position, ascending:
//
//   t = (scale · q) · k                         scores; soft-capped if asked
//   m' = max(m, max t);   a = exp(m − m')       running maximum
//   p = exp(t − m')                             0 where masked
//   l = a · l + Σ p;      z = a · z + Σ p · v   (p rounded to bf16 over bf16 pages)
//
// and z / l at the end. All sums of a unit have an order of their own, whoever shares its batch: a masked key
// adds an exact 0, and a rescale by exactly 1 is skipped.
//
// An engine gives the two products (see F32Dots for the plain form), a Lanes type of 16 floats, and:
//   Pages                the form it multiplies: Bf16Pages or F16Pages
//   Query, Weight        element of q and p as the products want them (float, or uint16_t for bf16)
//   load_query           scale · q as Query, zeros up to the padded length
//   query_row            elements of a unit's query, of so many padded dims
//   kGroup               units per call of the products
//   begin(units), end()  around a batch
//
// 16-bit pages are multiplied where they lie. Pages of codes become bf16 pages in scratch, a block for all units of a
// batch; the decode class multiplies the codes themselves (attention_codes.h). Shared values are turned into scratch
// (kv_shared.h).
#pragma once
#include "kernels/kv_codes.h"
#include "kernels/kv_pages.h"
#include "kernels/kv_shared.h"

namespace liuli::kernels {
namespace {

constexpr int kBlock = 256, kBlockPages = kBlock / kPagePositions;
constexpr int kBatch = 64;  // units that walk the pages together
constexpr float kLog2E = 1.44269504f;
constexpr float kNoMaximum = -1e30f;

// 2^t for t <= 0, degree-4 minimax on the fraction: relative error 2.7e-6.
template <class Lanes>
inline typename Lanes::V exp2_nonpositive(typename Lanes::V t) {
  const auto whole = Lanes::floor(t), r = Lanes::sub(t, whole);
  auto p = Lanes::set1(0.0135341681f);
  p = Lanes::fma(p, r, Lanes::set1(0.0520114603f));
  p = Lanes::fma(p, r, Lanes::set1(0.241442757f));
  p = Lanes::fma(p, r, Lanes::set1(0.693003834f));
  p = Lanes::fma(p, r, Lanes::set1(1.00000259f));
  return Lanes::scale_by_power_of_two(p, whole);
}

// exp(t − max) as the kernel and `pattern` both compute it.
template <class Lanes>
inline typename Lanes::V exp_below(typename Lanes::V t, typename Lanes::V max) {
  return exp2_nonpositive<Lanes>(Lanes::mul(Lanes::sub(t, max), Lanes::set1(kLog2E)));
}

/// Where the values of a 16-bit page begin, and their bytes.
struct WordPages {
  static size_t values_at(PageShape shape) {
    return kPagePositions * sizeof(uint16_t) * static_cast<size_t>((shape.head_dim + 31) / 32 * 32);
  }
  static size_t value_bytes(PageShape shape) {
    return kPagePositions * sizeof(uint16_t) * static_cast<size_t>((shape.value_dim + 15) / 16 * 16);
  }
};

/// The forms of a page: how a position gets in and out, how shared values are turned, how a line becomes two registers (as
/// pairs are taken: the first members, the second), and whether weights are rounded to it before they multiply.
struct Bf16Pages : WordPages {
  static constexpr bool kExpands = false;
  static constexpr auto bytes = &kv_page_bytes;
  static void turn(const uint16_t* keys, PageShape shape, uint16_t* values) {
    turn_page(keys, shape, values, turn_bf16);
  }
  static constexpr auto append = &bf16_page_append;
  static constexpr auto read = &bf16_page_read;
  static constexpr bool kRoundsWeights = true;
  template <class Lanes>
  static void widen(const uint16_t* line, typename Lanes::V& even, typename Lanes::V& odd) {
    Lanes::widen_bf16(line, even, odd);
  }
};
struct F16Pages : WordPages {
  static constexpr bool kExpands = false;
  static constexpr auto bytes = &kv_page_bytes;
  static void turn(const uint16_t* keys, PageShape shape, uint16_t* values) {
    turn_page(keys, shape, values, turn_f16);
  }
  static constexpr auto append = &f16_page_append;
  static constexpr auto read = &f16_page_read;
  static constexpr bool kRoundsWeights = false;
  template <class Lanes>
  static void widen(const uint16_t* line, typename Lanes::V& even, typename Lanes::V& odd) {
    even = Lanes::widen_f16(line);
    odd = Lanes::widen_f16(line + 16);
  }
};

/// Pages of codes.
struct Q8Pages : Codes8 {
  static constexpr bool kExpands = true;
  static constexpr auto bytes = &q8_0_page_bytes;
  static constexpr auto append = &q8_0_page_append;
  static constexpr auto read = &q8_0_page_read;
};
struct Q4Pages : Codes4 {
  static constexpr bool kExpands = true;
  static constexpr auto bytes = &q4_0_page_bytes;
  static constexpr auto append = &q4_0_page_append;
  static constexpr auto read = &q4_0_page_read;
};

/// The pages of a block as the products read them.
struct BlockPages {
  const uint16_t *keys[kBlockPages], *values[kBlockPages];
  const uint16_t* next[kBlockPages];  // keys of the page that takes this one's place in the next block
};

/// What the products of one group of units need.
template <class Engine>
struct GroupView {
  const BlockPages& pages;
  int page_begin, page_end;  // those that some unit of the group sees
  int units;
  int head_dim, key_dim;            // as given; padded to 32
  int value_dim;                    // padded to 16
  const typename Engine::Query* q;  // [units][key_dim], scaled
  float* scores;                    // [kGroup][kBlock]
  typename Engine::Weight* p;       // [kGroup][kBlock]
  float* z;                         // [units][value_dim]
  // Few units: the pages come from memory, and the next lines are asked for at reading pace. A page is read
  // in runs of 1–4 KiB, too short for the hardware to follow: 9 → 16 GB/s (head_dim 64), 11 → 19 (128) of 22
  // GB/s plain reading.
  bool fetch_values, fetch_next;  // while keys are read; while values are

  // What to fetch while a page's keys (values) are read: its values (the next block's keys).
  const uint16_t* after_keys(int page) const { return pages.values[page]; }
  const uint16_t* after_values(int page) const { return pages.next[page]; }
};

/// products.operator()<R>() of as many units as there are, up to kMost: each number is compiled by itself, so that sums stay
/// in registers.
template <int kMost, class Products>
inline void for_units(int units, const Products& products) {
  if constexpr (kMost > 1) {
    if (units < kMost) return for_units<kMost - 1>(units, products);
  }
  products.template operator()<kMost>();
}

/// Cache is the form of the pages in memory: Engine::Pages, or one that expands to it.
template <class Engine, class Cache = typename Engine::Pages>
struct BlockedAttention {
  using Lanes = typename Engine::Lanes;
  using Query = typename Engine::Query;
  using Weight = typename Engine::Weight;
  using V = typename Lanes::V;

  static int min(int a, int b) { return a < b ? a : b; }
  static int max(int a, int b) { return a > b ? a : b; }
  static int padded(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }

  // A batch of units: views into scratch, and each unit's running maximum and sum.
  struct Batch {
    const AttentionArgs& args;
    int key_dim, value_dim;
    Query* q;
    float* z;
    float* scores;
    Weight* p;
    uint16_t* pages_in_scratch;  // what of a block is not read as it lies
    BlockPages pages;
    int first_unit, units;
    float m[kBatch], l[kBatch];
    int begin[kBatch], end[kBatch];  // visible keys, by absolute position
  };

  static size_t scratch_bytes(PageShape shape, int) noexcept {
    return sizeof(Query) * kBatch * Engine::query_row(padded(shape.head_dim, 32)) +
           sizeof(float) * kBatch * padded(shape.value_dim, 16) +
           (sizeof(float) + sizeof(Weight)) * Engine::kGroup * kBlock +
           kBlockPages * scratch_words(shape) * sizeof(uint16_t);
  }
  static size_t scratch_words(PageShape shape) {  // of one page
    if constexpr (Cache::kExpands)
      return static_cast<size_t>(kPagePositions) *
             static_cast<size_t>(padded(shape.head_dim, 32) + padded(shape.value_dim, 16));
    else
      return shape.shared_values ? Cache::value_bytes(shape) / sizeof(uint16_t) : 0;
  }

  static Batch make_batch(const AttentionArgs& args, void* scratch) {
    const int key_dim = padded(args.head_dim, 32), value_dim = padded(args.value_dim, 16);
    auto* q = static_cast<Query*>(scratch);
    auto* z = reinterpret_cast<float*>(q + kBatch * Engine::query_row(key_dim));
    float* scores = z + kBatch * value_dim;
    auto* p = reinterpret_cast<Weight*>(scores + Engine::kGroup * kBlock);
    auto* pages = reinterpret_cast<uint16_t*>(p + Engine::kGroup * kBlock);
    return {args, key_dim, value_dim, q, z, scores, p, pages, {}, 0, 0, {}, {}, {}, {}};
  }

  static void find_visible(Batch& b, int r) {
    const AttentionArgs& args = b.args;
    const int position = args.first_position + (b.first_unit + r) / args.group;
    const bool past_only = args.causal || args.window > 0;
    b.begin[r] = args.window > 0 ? max(0, position - args.window + 1) : 0;
    b.end[r] = past_only ? position + 1 : args.n_keys;
    if (!args.causal) b.end[r] = min(b.end[r], args.n_keys);
  }

  static void load_units(Batch& b, int first, int units) {
    const AttentionArgs& args = b.args;
    b.first_unit = first;
    b.units = units;
    for (int r = 0; r < units; r++) {
      const int row = (first + r) / args.group, head = (first + r) % args.group;
      const float* q = args.q + row * args.q_row + head * args.q_head;
      Engine::load_query(q, args.scale, args.head_dim, b.key_dim, b.q + r * Engine::query_row(b.key_dim));
      for (int d = 0; d < b.value_dim; d++) b.z[r * b.value_dim + d] = 0.0f;
      b.m[r] = kNoMaximum;
      b.l[r] = 0.0f;
      find_visible(b, r);
    }
  }

  static void cap_scores(float cap, float* s, int begin, int end) {
    for (int i = begin; i < end; i++) s[i] = cap * __builtin_tanhf(s[i] / cap);
  }

  static void copy_scores(const Batch& b, int r, const float* s, int block, int begin, int end) {
    const AttentionArgs& args = b.args;
    const int row = (b.first_unit + r) / args.group, head = (b.first_unit + r) % args.group;
    float* out = args.scores + (static_cast<ptrdiff_t>(head) * args.n_rows + row) * args.n_keys;
    const int present = min(end, args.n_keys - block * kBlock);
    if (begin < present)
      __builtin_memcpy(out + block * kBlock + begin, s + begin,
                       sizeof(float) * static_cast<size_t>(present - begin));
  }

  // Scales what unit r has summed so far from its old maximum to the new one.
  static void raise_maximum(Batch& b, int r, float m) {
    if (b.m[r] != kNoMaximum) {
      const float t = (b.m[r] - m) * kLog2E;
      const V factor = exp2_nonpositive<Lanes>(Lanes::set1(t > -126.0f ? t : -126.0f));
      b.l[r] *= Lanes::first(factor);
      float* z = b.z + r * b.value_dim;
      for (int d = 0; d < b.value_dim; d += 16) Lanes::store(z + d, Lanes::mul(Lanes::load(z + d), factor));
    }
    b.m[r] = m;
  }

  template <bool kEdge>
  static V visible(V v, int i, int begin, int end, float otherwise) {
    if constexpr (kEdge) return Lanes::keep_range(v, begin - i, end - i, otherwise);
    return v;
  }

  // Scores to weights for keys [from, to) of the block (multiples of 32), of which [begin, end) are visible.
  template <bool kEdge>
  static void softmax(Batch& b, int r, const float* s, Weight* p, int from, int to, int begin, int end) {
    V top = Lanes::set1(kNoMaximum);
    for (int i = from; i < to; i += 16) {
      top = Lanes::max(top, visible<kEdge>(Lanes::load(s + i), i, begin, end, kNoMaximum));
    }
    const float block_max = Lanes::reduce_max(top);
    if (block_max > b.m[r]) raise_maximum(b, r, block_max);
    const V m = Lanes::set1(b.m[r]);
    V sum = Lanes::set1(0.0f);
    for (int i = from; i < to; i += 32) {
      const V even = visible<kEdge>(exp_below<Lanes>(Lanes::load(s + i), m), i, begin, end, 0.0f);
      const V odd = visible<kEdge>(exp_below<Lanes>(Lanes::load(s + i + 16), m), i + 16, begin, end, 0.0f);
      sum = Lanes::add(Lanes::add(sum, even), odd);
      Engine::store_weights(p + i, even, odd);
    }
    b.l[r] += Lanes::reduce_add(sum);
  }

  static void softmax_unit(Batch& b, int r, float* s, Weight* p, int block, int from, int to) {
    const int begin = max(b.begin[r] - block * kBlock, from), end = min(b.end[r] - block * kBlock, to);
    if (begin >= end) {
      for (int i = from; i < to; i++) p[i] = Weight{};
      return;
    }
    if (b.args.soft_cap != 0.0f) cap_scores(b.args.soft_cap, s, begin, end);
    if (b.args.scores) copy_scores(b, r, s, block, begin, end);
    if (begin == from && end == to) {
      softmax<false>(b, r, s, p, from, to, begin, end);
    } else {
      softmax<true>(b, r, s, p, from, to, begin, end);
    }
  }

  static const uint8_t* page_of(const Batch& b, int block, int page) {
    return b.args.pages[block * kBlockPages + page];
  }
  // The page that comes to `page`'s place next; itself at the end.
  static const uint8_t* next_page(const Batch& b, int block, int page) {
    const int next = (block + 1) * kBlockPages + page;
    const bool present = next * kPagePositions < b.end[b.units - 1];
    return b.args.pages[present ? next : block * kBlockPages + page];
  }

  struct Pages {
    int begin, end;
  };
  // Pages of the block that some of units [r0, r0 + units) see; none: begin >= end.
  static Pages seen_pages(const Batch& b, int block, int r0, int units) {
    int begin = kBlock, end = 0;
    for (int r = r0; r < r0 + units; r++) {
      if (b.begin[r] < b.end[r]) begin = min(begin, max(0, b.begin[r] - block * kBlock));
      end = max(end, min(kBlock, b.end[r] - block * kBlock));
    }
    if (begin >= end) return {0, 0};
    return {begin / kPagePositions, (end + kPagePositions - 1) / kPagePositions};
  }

  // A page of codes as a bf16 page.
  static void expand(Batch& b, int block, int page, uint16_t* keys) {
    using Expansion = CodeExpansion<Lanes, Cache>;
    const PageShape shape = b.args.page_shape();
    const CodeLayout at = code_layout(shape, Cache::kTileBytes);
    const uint8_t *from = page_of(b, block, page), *next = next_page(b, block, page);
    uint16_t* values = keys + kPagePositions * b.key_dim;
    b.pages.keys[page] = keys;
    b.pages.values[page] = values;
    Expansion::keys(from, at, keys, shape.shared_values ? next : from + at.values());
    if (shape.shared_values)
      Bf16Pages::turn(keys, shape, values);
    else
      Expansion::values(from, at, values, next);
  }

  static void open_page(Batch& b, int block, int page, uint16_t* turned) {
    const PageShape shape = b.args.page_shape();
    const uint8_t* lies = page_of(b, block, page);
    b.pages.keys[page] = reinterpret_cast<const uint16_t*>(lies);
    b.pages.next[page] = reinterpret_cast<const uint16_t*>(next_page(b, block, page));
    b.pages.values[page] = reinterpret_cast<const uint16_t*>(lies + Cache::values_at(shape));
    if (!shape.shared_values) return;
    Cache::turn(b.pages.keys[page], shape, turned);
    b.pages.values[page] = turned;
  }

  // Says where the products find the block's pages.
  static void open_block(Batch& b, int block) {
    const Pages seen = seen_pages(b, block, 0, b.units);
    const size_t words = scratch_words(b.args.page_shape());
    for (int page = seen.begin; page < seen.end; page++) {
      uint16_t* scratch = b.pages_in_scratch + static_cast<size_t>(page) * words;
      if constexpr (Cache::kExpands)
        expand(b, block, page, scratch);
      else
        open_page(b, block, page, scratch);
    }
  }

  // One block for units [r0, r0 + units).
  static void attend_group(Batch& b, int block, int r0, int units) {
    const Pages seen = seen_pages(b, block, r0, units);
    if (seen.begin >= seen.end) return;
    constexpr bool lies = !Cache::kExpands;
    const bool shared = b.args.shared_values, alone = b.units <= Engine::kGroup && !shared;
    const GroupView<Engine> group{b.pages,
                                  seen.begin,
                                  seen.end,
                                  units,
                                  b.args.head_dim,
                                  b.key_dim,
                                  b.value_dim,
                                  b.q + r0 * Engine::query_row(b.key_dim),
                                  b.scores,
                                  b.p,
                                  b.z + r0 * b.value_dim,
                                  lies && alone,
                                  lies && (alone || (shared && r0 + units == b.units))};
    Engine::scores(group);
    for (int r = 0; r < units; r++) {
      softmax_unit(b, r0 + r, b.scores + r * kBlock, b.p + r * kBlock, block, seen.begin * kPagePositions,
                   seen.end * kPagePositions);
    }
    Engine::values(group);
  }

  static void store_unit(const Batch& b, int r) {
    const AttentionArgs& args = b.args;
    const int row = (b.first_unit + r) / args.group, head = (b.first_unit + r) % args.group;
    float* z = args.z + row * args.z_row + head * args.z_head;
    const float inverse = b.l[r] > 0.0f ? 1.0f / b.l[r] : 0.0f;
    for (int d = 0; d < args.value_dim; d++) z[d] = b.z[r * b.value_dim + d] * inverse;
    const ptrdiff_t at = static_cast<ptrdiff_t>(head) * args.n_rows + row;
    if (args.row_max) args.row_max[at] = b.m[r];
    if (args.row_sum) args.row_sum[at] = b.l[r];
  }

  static void attend(const AttentionArgs& args, void* scratch) noexcept {
    Batch b = make_batch(args, scratch);
    const int all = args.n_rows * args.group;
    for (int first = 0; first < all; first += kBatch) {
      load_units(b, first, min(kBatch, all - first));
      Engine::begin(b.units);
      int begin = b.begin[0], end = b.end[b.units - 1];  // both ascend with the unit
      for (int block = begin / kBlock; block * kBlock < end; block++) {
        open_block(b, block);
        for (int r = 0; r < b.units; r += Engine::kGroup)
          attend_group(b, block, r, min(Engine::kGroup, b.units - r));
      }
      Engine::end();
      for (int r = 0; r < b.units; r++) store_unit(b, r);
    }
  }

  static void pattern(const float* scores, float max_score, float sum, int n, float* out) noexcept {
    const V m = Lanes::set1(max_score);
    int i = 0;
    for (; i + 16 <= n; i += 16) Lanes::store(out + i, exp_below<Lanes>(Lanes::load(scores + i), m));
    float lanes[16];
    for (int j = 0; j < 16; j++) lanes[j] = i + j < n ? scores[i + j] : max_score;
    Lanes::store(lanes, exp_below<Lanes>(Lanes::load(lanes), m));
    for (int j = 0; i + j < n; j++) out[i + j] = lanes[j];
    for (int j = 0; j < n; j++) out[j] = out[j] / sum;
  }

  static constexpr AttentionKernels table(const char* name) {
    return {name,          Cache::bytes,       &scratch_bytes,
            Cache::append, Cache::read,        &attend,
            &pattern,      sizeof(Query) == 2, Engine::Pages::kRoundsWeights};
  }
};

}  // namespace
}  // namespace liuli::kernels
