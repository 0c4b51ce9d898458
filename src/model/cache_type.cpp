#include "liuli/cache_type.h"

#include <iterator>
#include <string>

#include <fmt/format.h>

#include "liuli/error.h"

namespace liuli {
namespace {

constexpr const char* kNames[] = {"auto", "f32", "f16", "bf16", "q8_0", "q4_0"};

int64_t in_groups(int64_t width, int64_t code_bits) {
  constexpr int64_t kGroup = 32, kScaleBytes = 2;
  return width * code_bits / 8 + (width + kGroup - 1) / kGroup * kScaleBytes;
}

}  // namespace

const char* to_string(CacheType type) { return kNames[static_cast<size_t>(type)]; }

CacheType cache_type_named(std::string_view name) {
  std::string known;
  for (size_t i = 0; i < std::size(kNames); i++) {
    if (name == kNames[i]) return static_cast<CacheType>(i);
    known.append(i > 0 ? ", " : "").append(kNames[i]);
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("cache type is \"{}\", known are {}", name, known));
}

int64_t cached_bytes(CacheType type, int64_t width) {
  switch (type) {
    case CacheType::f32:
      return 4 * width;
    case CacheType::q8_0:
      return in_groups(width, 8);
    case CacheType::q4_0:
      return in_groups(width, 4);
    case CacheType::automatic:
    case CacheType::f16:
    case CacheType::bf16:
      break;
  }
  return 2 * width;
}

}  // namespace liuli
