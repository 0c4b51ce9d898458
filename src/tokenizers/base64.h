// Bytes written as text, as JSON files and tiktoken's vocabularies have them.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace liuli {

/// The bytes of a base64 text (padding may be missing, line breaks are skipped); nothing if it is none.
std::optional<std::vector<uint8_t>> from_base64(std::string_view text);

}  // namespace liuli
