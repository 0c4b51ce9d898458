// Where a value that somebody reads is formed, so that it need not be copied.
#pragma once
#include "model/step.h"

namespace liuli {

/// Memory of the listener for a whole value, if it only reads it and has some that products can work in (64-byte aligned
/// rows of whole panels, see Rows); else data is null. What is formed there must stay as it was shown.
Rows listeners_rows(const Step& s, Point point, int layer, int64_t n, int64_t width);

/// The same, or rows of the scratch memory.
Rows rows_to_show(Step& s, Point point, int layer, int64_t n, int64_t width);

}  // namespace liuli
