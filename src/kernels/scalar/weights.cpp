// Products with weight panels, the plainest way: a lane's chunk goes back to file form, is decoded, and is
// multiplied. This is the reference for every other ISA, and the fallback.
#include <cmath>
#include <cstring>

#include "core/half.h"
#include "kernels/isa_tables.h"
#include "kernels/panels.h"
#include "kernels/scalar/block_codes.h"
#include "kernels/scalar/fixed16.h"
#include "kernels/scalar/int8_blocks.h"

namespace liuli::kernels {
namespace {

// Lane `lane`'s decoded columns of one chunk; zeros beyond k.
void decode_lane(DType type, const uint8_t* panel, int64_t k, int64_t chunk, int lane, float* out) {
  alignas(64) uint8_t blocks[kMaxChunkBytes];
  const int64_t n = k - chunk * kChunk < kChunk ? k - chunk * kChunk : kChunk;
  unpack_chunk(type, panel, k, chunk, lane, blocks);
  decode_row(type, blocks, n, out);
  for (int64_t i = n; i < kChunk; i++) out[i] = 0.0f;
}

int chunk_columns(int64_t k, int64_t chunk) {
  const int64_t left = k - chunk * kChunk;
  return static_cast<int>(left < kChunk ? left : kChunk);
}

// ---- decode class, integers -----------------------------------------------------------------------------

// One chunk of one output: Σ over its sub-blocks, the scale of the activations still missing.
float dot_codes(const BlockCodesType& type, const BlockCodes& w, const int16_t* q, int columns) {
  float f = 0.0f;
  for (int s = 0; s < columns / type.sub; s++) {
    int32_t products = 0, sum = 0;
    for (int i = type.sub * s; i < type.sub * (s + 1); i++) {
      products += (w.code[i] - type.offset) * q[i];
      sum += q[i];
    }
    f = std::fma(static_cast<float>(products), w.scale[s], f);
    if (type.has_minimum) f = std::fma(w.minimum[s], static_cast<float>(sum), f);
  }
  return f;
}

// The activations' integers from their two planes, in column order.
void integers(const ActivationChunk& act, int16_t* q) {
  for (int i = 0; i < kChunk; i++) q[i] = static_cast<int16_t>(256 * act.hi[i] + act.lo[i]);
}

template <DType type>
void decode_x16(const uint8_t* panel, int64_t k, const ActivationChunk* act, int n_rows, float* y,
                ptrdiff_t ldy) noexcept {
  const BlockCodesType& codes_type = *block_codes_type(type);
  for (int m = 0; m < n_rows; m++)
    for (int lane = 0; lane < kPanelRows; lane++) y[m * ldy + lane] = 0.0f;
  for (int64_t chunk = 0; chunk * kChunk < k; chunk++) {
    const int columns = chunk_columns(k, chunk);
    for (int lane = 0; lane < kPanelRows; lane++) {
      uint8_t blocks[kMaxChunkBytes];
      BlockCodes codes;
      unpack_chunk(type, panel, k, chunk, lane, blocks);
      codes_type.split(blocks, columns, codes);
      for (int m = 0; m < n_rows; m++) {
        const ActivationChunk& a = act[chunk * n_rows + m];
        int16_t q[kChunk];
        integers(a, q);
        float& total = y[m * ldy + lane];
        total = std::fma(dot_codes(codes_type, codes, q, columns), a.scale, total);
      }
    }
  }
}

// ---- f32 ------------------------------------------------------------------------------------------------

template <DType type>
void decode_f32(const uint8_t* panel, int64_t k, const float* x, ptrdiff_t ldx, int n_rows, float* y,
                ptrdiff_t ldy) noexcept {
  for (int m = 0; m < n_rows; m++) {
    for (int lane = 0; lane < kPanelRows; lane++) {
      float even = 0.0f, odd = 0.0f, w[kChunk];
      for (int64_t chunk = 0; chunk * kChunk < k; chunk++) {
        decode_lane(type, panel, k, chunk, lane, w);
        const float* xc = x + m * ldx + chunk * kChunk;
        for (int i = 0; i < chunk_columns(k, chunk); i++) {
          float& sum = i % 2 == 0 ? even : odd;
          sum = std::fma(w[i], xc[i], sum);
        }
      }
      y[m * ldy + lane] = even + odd;
    }
  }
}

template <DType type>
void product_f32(const uint8_t* panel, int64_t k, const float* x, ptrdiff_t ldx, int n_rows, float* y,
                 ptrdiff_t ldy) noexcept {
  for (int m = 0; m < n_rows; m++)
    for (int lane = 0; lane < kPanelRows; lane++) y[m * ldy + lane] = 0.0f;
  for (int64_t chunk = 0; chunk * kChunk < k; chunk++) {
    for (int lane = 0; lane < kPanelRows; lane++) {
      float w[kChunk];
      decode_lane(type, panel, k, chunk, lane, w);
      for (int m = 0; m < n_rows; m++) {
        float& sum = y[m * ldy + lane];
        for (int i = 0; i < chunk_columns(k, chunk); i++)
          sum = std::fma(w[i], x[m * ldx + chunk * kChunk + i], sum);
      }
    }
  }
}

// ---- prompt class ---------------------------------------------------------------------------------------

template <DType type>
void expand_bf16(const uint8_t* panel, int64_t k, int64_t k_begin, int64_t k_end, uint16_t* tiles) noexcept {
  for (int lane = 0; lane < kPanelRows; lane++) {
    float w[kChunk];
    for (int64_t chunk = k_begin / kChunk; chunk * kChunk < k_end; chunk++) {
      if (chunk * kChunk < k)
        decode_lane(type, panel, k, chunk, lane, w);
      else
        std::memset(w, 0, sizeof w);
      for (int i = 0; i < kChunk; i++) {
        const int64_t column = chunk * kChunk + i - k_begin;
        if (column >= 0 && column < k_end - k_begin)
          tiles[column / 2 * 32 + 2 * lane + column % 2] = f32_to_bf16(w[i]);
      }
    }
  }
}

template <DType type>
void expand_fixed16(const uint8_t* panel, int64_t k, int64_t k_begin, int64_t k_end,
                    int16_t* lines) noexcept {
  for (int64_t at = k_begin; at < k_end; at += kFixedBlock, lines += kFixedLines * kFixedLine) {
    for (int lane = 0; lane < kPanelRows; lane++) {
      float w[kChunk] = {};
      if (at < k) decode_lane(type, panel, k, at / kChunk, lane, w);
      fixed16_store(w + at % kChunk, kFixedBlock, lane, lines);
    }
  }
}

// The 32 columns from `first` on of a chunk's codes.
Int8Weights int8_weights(const BlockCodesType& type, const BlockCodes& codes, int first) {
  Int8Weights w{};
  for (int i = 0; i < kInt8Block; i++) w.code[i] = static_cast<int8_t>(codes.code[first + i] - type.offset);
  for (int half = 0; half < kInt8Block / type.sub; half++) {
    w.scale[half] = codes.scale[first / type.sub + half];
    w.minimum[half] = type.has_minimum ? codes.minimum[first / type.sub + half] : 0.0f;
  }
  return w;
}

template <DType type>
void expand_codes(const uint8_t* panel, int64_t k, int64_t k_begin, int64_t k_end, int8_t* blocks) noexcept {
  const BlockCodesType& codes_type = *block_codes_type(type);
  for (int lane = 0; lane < kPanelRows; lane++) {
    uint8_t file_blocks[kMaxChunkBytes];
    BlockCodes codes;
    for (int64_t at = k_begin; at < k_end; at += kInt8Block) {
      const int64_t chunk = at / kChunk;
      if (at < k && (at == k_begin || at % kChunk == 0)) {
        unpack_chunk(type, panel, k, chunk, lane, file_blocks);
        codes_type.split(file_blocks, chunk_columns(k, chunk), codes);
      }
      const Int8Weights w =
          at < k ? int8_weights(codes_type, codes, static_cast<int>(at % kChunk)) : Int8Weights{};
      int8_store(w, codes_type.sub == 16, codes_type.has_minimum, lane,
                 blocks + (at - k_begin) / kInt8Block * kInt8Bytes);
    }
  }
}

// ---- the table ------------------------------------------------------------------------------------------

template <int id>
void set_kernels(WeightTable& table) {
  if (!dtype_at(id)) return;
  constexpr DType type = static_cast<DType>(id);
  WeightKernels& w = table.by_type[id];
  w = {"scalar, f32", false, false, nullptr, decode_f32<type>, product_f32<type>, expand_bf16<type>, nullptr};
  if (type == DType::f16) w.expand_fixed16 = expand_fixed16<type>;
  if (const BlockCodesType* codes = block_codes_type(type)) {
    w.expand_codes = expand_codes<type>;
    w.two_scales = codes->sub == 16;
    w.has_minimum = codes->has_minimum;
    w.code_least = codes->least - codes->offset;
    w.code_most = codes->most - codes->offset;
    w.name = "scalar, integers";
    w.integer_decode = true;
    w.decode_x16 = decode_x16<type>;
  }
}
template <int... ids>
WeightTable make_table(std::integer_sequence<int, ids...>) {
  WeightTable table{};
  (set_kernels<ids>(table), ...);
  return table;
}

}  // namespace

void decode_chunk(DType type, const uint8_t* panel, int64_t k, int64_t chunk, float* out) noexcept {
  for (int lane = 0; lane < kPanelRows; lane++) {
    float w[kChunk];
    decode_lane(type, panel, k, chunk, lane, w);
    for (int i = 0; i < kChunk; i++) out[i * kPanelRows + lane] = w[i];
  }
}

const WeightTable* weights_scalar() noexcept {
  static const WeightTable table = make_table(std::make_integer_sequence<int, kDTypeCount>{});
  return &table;
}

}  // namespace liuli::kernels
