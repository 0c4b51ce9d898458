#include "formats/byte_cursor.h"

#include <iterator>

namespace liuli {

std::string quoted_name(std::string_view name) {
  constexpr size_t kShown = 80;
  std::string text(1, '"');
  for (const unsigned char c : name.substr(0, kShown)) {
    if (c < 0x20 || c == 0x7F || c == '"' || c == '\\') {
      fmt::format_to(std::back_inserter(text), "\\x{:02x}", c);
    } else {
      text.push_back(static_cast<char>(c));
    }
  }
  text.append(name.size() > kShown ? "…\"" : "\"");
  return text;
}

void ByteCursor::fail_as(ErrorCode code, const std::string& reason) const {
  const std::string place =
      name_.empty() ? std::string(kind_) : fmt::format("{} {}", kind_, quoted_name(name_));
  throw Error(code, fmt::format("{}: {}, byte {}: {}", path_, place, position_, reason));
}

}  // namespace liuli
