// The element types a tensor can be stored in: one table row per type, in the numbering of GGUF, then our own.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace liuli {

/// A stored element type; the value is GGUF's type id. Ids that were withdrawn (4, 5, 31…33, 36…38) have no
/// row. Types from kGgufTypes on are in no GGUF file; their number may change.
enum class DType : uint8_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq4_nl = 20,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  iq1_m = 29,
  bf16 = 30,
  tq1_0 = 34,
  tq2_0 = 35,
  mxfp4 = 39,
  nvfp4 = 40,
  f8_e4m3_b128 =
      41,  ///< a row of FP8 codes with the scale of each 128 in front of them: [f32 scale][128 codes]
};
constexpr int kGgufTypes = 41;   ///< one past GGUF's largest id
constexpr int kDTypeCount = 42;  ///< one past the largest id: the length of a table indexed by DType

struct DTypeInfo {
  const char* name;  ///< as GGUF tools print it: "Q4_K"
  int block;         ///< elements per block (1 for plain types)
  int bytes;         ///< bytes per block
};

/// The row of a type that exists.
const DTypeInfo& dtype_info(DType type);
/// The type with GGUF's id, or nothing for an unknown or withdrawn one.
std::optional<DType> dtype_from_gguf(uint32_t id);
/// The type in row `index` of a table indexed by DType, GGUF's or our own; nothing for a gap.
std::optional<DType> dtype_at(int index);
/// The type of a name in any case ("q4_k"), or nothing.
std::optional<DType> dtype_from_name(std::string_view name);
/// Bytes of one row of n elements; n must be a multiple of the block.
inline int64_t row_bytes(DType type, int64_t n) {
  const DTypeInfo& info = dtype_info(type);
  return n / info.block * info.bytes;
}

}  // namespace liuli
