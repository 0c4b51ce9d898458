// The prompt product of 8-bit blocks in plain loops (int8_blocks.h).
#include <cmath>

#include "kernels/isa_tables.h"
#include "kernels/prompt_blocked.h"
#include "kernels/scalar/int8_blocks.h"

namespace liuli::kernels {
namespace {

template <class T>
T word_at(const int8_t* lines, int row) {
  T word;
  __builtin_memcpy(&word, lines + 4 * row, sizeof word);
  return word;
}

struct ScalarInt8 : Int8Columns {
  static constexpr int kRows = 16, kPanels = 1, kGroup = 1, kChunk = 256;

  static void pack(const float* x, ptrdiff_t ldx, int rows, int64_t k, int8_t* out) {
    for (int64_t i = 0; i < k; i += kInt8Block, out += kInt8Bytes) {
      const int columns = static_cast<int>(k - i < kInt8Block ? k - i : kInt8Block);
      for (int r = 0; r < kStrip; r++)
        int8_store(x + (r < rows ? r * ldx + i : 0), r < rows ? columns : 0, r, out);
    }
  }

  template <int R, int P>
  static void tile(const RegisterTile<int8_t>& t) {
    for (int r = 0; r < R; r++) {
      float sums[kPanelRows] = {};
      if (t.c_in) __builtin_memcpy(sums, t.c_in + r * t.ldc_in, sizeof sums);
      const int8_t *a = t.a + 4 * r, *b = t.b;
      for (int left = t.units; left > 0; left -= kInt8Quads, a += kInt8Bytes, b += kInt8Bytes) {
        float block[kPanelRows] = {};
        if (t.weight->two_scales) {
          add_part(a, b, 0, kInt8Quads / 2, a + kInt8RowHalfSums, t.weight->has_minimum, block);
          add_part(a, b, 1, kInt8Quads / 2, a + kInt8RowHalfSums + kInt8Line, t.weight->has_minimum, block);
        } else {
          add_part(a, b, 0, kInt8Quads, a + kInt8RowSum, t.weight->has_minimum, block);
        }
        const auto scale = word_at<float>(a + kInt8RowScale, 0);
        for (int lane = 0; lane < kPanelRows; lane++) sums[lane] = std::fma(block[lane], scale, sums[lane]);
      }
      __builtin_memcpy(t.c_out + r * t.ldc_out, sums, sizeof sums);
    }
  }

  // Quads [quads · part, …) of a row and 16 weight rows; fma(p, s, 0) is p · s.
  static void add_part(const int8_t* a, const int8_t* b, int part, int quads, const int8_t* row_sum,
                       bool has_minimum, float* block) {
    for (int lane = 0; lane < kPanelRows; lane++) {
      auto products = word_at<int32_t>(b + kInt8Starts + part * kInt8Line, lane);
      for (int i = quads * part; i < quads * part + quads; i++)
        for (int j = 0; j < 4; j++)
          products += static_cast<uint8_t>(a[i * kInt8Line + j]) * b[i * kInt8Line + 4 * lane + j];
      float& f = block[lane];
      f = std::fma(static_cast<float>(products), word_at<float>(b + kInt8Scales + part * kInt8Line, lane), f);
      if (has_minimum)
        f = std::fma(word_at<float>(b + kInt8Minima + part * kInt8Line, lane), word_at<float>(row_sum, 0), f);
    }
  }
};

}  // namespace

const PromptKernels* prompt_int8_scalar() noexcept {
  static constexpr PromptKernels kernels = BlockedPrompt<ScalarInt8>::table("8-bit blocks of 32, scalar");
  return &kernels;
}

}  // namespace liuli::kernels
