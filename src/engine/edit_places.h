// Where an edit goes: a point's axes, and which indices of each are meant.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "liuli/edit.h"
#include "model/point.h"

namespace liuli {

/// An index range with its ends resolved.
struct Span {
  int64_t begin, end;
};

/// Which indices of one axis are meant.
class AxisChoice {
 public:
  /// ranges: none: everything. `size`: how many indices there are (of tokens: with those to come); negative indices count
  /// from `from_end`. Errors: invalid_argument, naming `what`.
  AxisChoice(const std::string& what, std::span<const IndexRange> ranges, int64_t size, int64_t from_end);
  bool has(int64_t index) const;
  bool everything() const { return spans_.empty(); }
  int64_t first() const;
  int64_t last() const;

 private:
  std::vector<Span> spans_;
  int64_t size_;
};

/// What an edit touches of one place.
struct EditTarget {
  Place place;
  std::span<const Axis> axes;
  std::vector<AxisChoice> choice;  ///< per axis

  int64_t last_size(const ModelConfig& config) const { return axis_size(config, axes.back()); }
};

/// How long a run is: its prompt, and with the tokens that may be generated.
struct RunLength {
  int64_t prompt = 0, total = 0;
};
/// Errors: not_found, invalid_argument, unsupported (a place where a change would go nowhere).
std::vector<EditTarget> find_targets(const ModelConfig& config, const Edit& edit, RunLength length);

}  // namespace liuli
