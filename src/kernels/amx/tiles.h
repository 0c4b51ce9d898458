// The few tile instructions the AMX kernels use, and the same in plain arrays for machines without them.
//
// LIULI_EMULATE_TILES (set by a test target only) picks the arrays: so the kernels' loops, strides and edges
// are tested everywhere. Inline assembly rather than the compiler's intrinsics: GCC 12 passes ldtilecfg an
// 8-byte operand, whose remaining 56 bytes the optimiser then drops, and does not tell it that tile loads
// read memory.
#pragma once
#include <cstddef>
#include <cstdint>

namespace liuli::kernels {
namespace {

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t rows[16] = {};
};

/// Tiles of 64-byte rows: 16 rows in the tiles of weights (or keys, values), `rows` in all others.
inline TileConfig make_tile_config(int rows, int weight_tile0, int weight_tile1) {
  TileConfig config;
  for (int i = 0; i < 8; i++) {
    config.bytes_per_row[i] = 64;
    config.rows[i] = static_cast<uint8_t>(i == weight_tile0 || i == weight_tile1 ? 16 : rows);
  }
  return config;
}

#ifdef LIULI_EMULATE_TILES
#define LIULI_AMX_NAME(name) name##_amx_emulated

struct EmulatedTiles {
  TileConfig config;
  alignas(64) uint8_t bytes[8][16][64];
};
static thread_local EmulatedTiles emulated;

inline float widen_bf16(const uint8_t* row, int i) {
  uint16_t half;
  __builtin_memcpy(&half, row + 2 * i, sizeof half);
  const uint32_t word = static_cast<uint32_t>(half) << 16;
  float value;
  __builtin_memcpy(&value, &word, sizeof value);
  return __builtin_fabsf(value) < 0x1p-126f ? __builtin_copysignf(0.0f, value) : value;  // denormals are zero
}
inline float flush(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x; }

inline void load_tile_config(const TileConfig& config) {
  emulated.config = config;
  __builtin_memset(emulated.bytes, 0, sizeof emulated.bytes);
}
inline void release_tiles() { emulated.config = TileConfig{0}; }

template <int T>
inline void tile_zero() {
  __builtin_memset(emulated.bytes[T], 0, sizeof emulated.bytes[T]);
}
template <int T>
inline void tile_load(const void* base, ptrdiff_t stride) {
  tile_zero<T>();
  for (int r = 0; r < emulated.config.rows[T]; r++) {
    __builtin_memcpy(emulated.bytes[T][r], static_cast<const uint8_t*>(base) + r * stride,
                     emulated.config.bytes_per_row[T]);
  }
}
template <int T>
inline void tile_stream_load(const void* base, ptrdiff_t stride) {
  tile_load<T>(base, stride);
}
template <int T>
inline void tile_store(void* base, ptrdiff_t stride) {
  for (int r = 0; r < emulated.config.rows[T]; r++) {
    __builtin_memcpy(static_cast<uint8_t*>(base) + r * stride, emulated.bytes[T][r],
                     emulated.config.bytes_per_row[T]);
  }
}
/// C[m][n] += A[m][2k] · B[k][2n], then += A[m][2k + 1] · B[k][2n + 1], k ascending; shapes that do not fit
/// are #UD.
template <int C, int A, int B>
inline void tile_dot_bf16() {
  const TileConfig& config = emulated.config;
  const int pairs = config.bytes_per_row[A] / 4, columns = config.bytes_per_row[C] / 4;
  if (config.palette != 1 || config.rows[A] != config.rows[C] || config.rows[B] != pairs ||
      config.bytes_per_row[B] != config.bytes_per_row[C]) {
    __builtin_trap();
  }
  for (int m = 0; m < config.rows[C]; m++) {
    float sums[16];
    __builtin_memcpy(sums, emulated.bytes[C][m], sizeof sums);
    for (int k = 0; k < pairs; k++) {
      const float first = widen_bf16(emulated.bytes[A][m], 2 * k),
                  second = widen_bf16(emulated.bytes[A][m], 2 * k + 1);
      for (int n = 0; n < columns; n++) {
        sums[n] = flush(__builtin_fmaf(first, widen_bf16(emulated.bytes[B][k], 2 * n), sums[n]));
        sums[n] = flush(__builtin_fmaf(second, widen_bf16(emulated.bytes[B][k], 2 * n + 1), sums[n]));
      }
    }
    __builtin_memcpy(emulated.bytes[C][m], sums, sizeof sums);
  }
}

#else
#define LIULI_AMX_NAME(name) name##_amx

/// Per thread, before any tile is used; the process needs the system's permission (cpu_features asks for it).
inline void load_tile_config(const TileConfig& config) { asm volatile("ldtilecfg %0" ::"m"(config)); }
inline void release_tiles() { asm volatile("tilerelease" ::: "memory"); }

template <int T>
inline void tile_zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(T));
}
template <int T>
inline void tile_load(const void* base, ptrdiff_t stride) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(T), "r"(base), "r"(stride) : "memory");
}
/// A load that leaves L1 to others: activations pass by, the weights stay (1.78 → 2.52 TFLOPS in a bare
/// loop).
template <int T>
inline void tile_stream_load(const void* base, ptrdiff_t stride) {
  asm volatile("tileloaddt1 (%1,%2,1), %%tmm%c0" ::"i"(T), "r"(base), "r"(stride) : "memory");
}
template <int T>
inline void tile_store(void* base, ptrdiff_t stride) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(T), "r"(base), "r"(stride) : "memory");
}
/// C += A · B over 16 pairs of bf16: A has a row per row of C, B a row per pair.
template <int C, int A, int B>
inline void tile_dot_bf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
}
#endif

}  // namespace
}  // namespace liuli::kernels
