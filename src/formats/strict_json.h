// JSON of foreign files, read without the liberties a JSON library takes.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace liuli {

/// Parses an object. A key twice in one object is refused (a library keeps one of the two and says nothing), so is
/// nesting deeper than `max_depth`; NaN and Infinity are no JSON. `place` begins every message.
///
/// Errors: corrupt_file.
nlohmann::json parse_json_object(const std::string& place, std::string_view text, int max_depth);

}  // namespace liuli
