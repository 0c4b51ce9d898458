// How the keys and values of earlier tokens are kept.
#pragma once
#include <cstdint>
#include <string_view>

namespace liuli {

/// automatic: f32 in the f32 class and exact runs, f16 where all matrices are F16 (or F32: bf16 keys would be coarser than
/// the weights that formed them), else bf16. Q8_0 and Q4_0 keep 8 and 4 bits, with an f16 scale per 32 dims of a head.
enum class CacheType : uint8_t { automatic, f32, f16, bf16, q8_0, q4_0 };

/// "auto", "f32", "f16", "bf16", "q8_0", "q4_0".
const char* to_string(CacheType type);
/// Errors: invalid_argument (names what is known).
CacheType cache_type_named(std::string_view name);
/// Bytes of one key or value of `width` numbers; automatic counts 16 bits.
int64_t cached_bytes(CacheType type, int64_t width);

}  // namespace liuli
