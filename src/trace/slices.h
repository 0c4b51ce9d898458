// "3:7", "0,2,-1", "::2": some indices of an axis.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace liuli {

/// The indices that a selection keeps, ascending, each once. Pieces are separated by commas, as Python writes them: an
/// index, or begin:end:step with any of them left out; negative ones count from the end.
/// Errors: invalid_argument for a piece that is no selection or an index outside 0 … size − 1; `what` names the axis.
std::vector<int64_t> parse_slice(std::string_view text, int64_t size, const std::string& what);

/// Splits at the commas outside brackets: "a[1,2],b" gives "a[1,2]" and "b".
std::vector<std::string> split_outside_brackets(std::string_view text);

}  // namespace liuli
