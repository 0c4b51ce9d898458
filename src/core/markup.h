// Text inside HTML and SVG.
#pragma once
#include <string>
#include <string_view>

namespace liuli {

/// The text as content or as a quoted attribute: & < > " by name; control characters that XML forbids are left out.
std::string escaped(std::string_view text);

}  // namespace liuli
