// NumPy's array file, version 1.0.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace liuli {

/// Writes f32 values, last index fastest, as numpy.load reads them.
/// Shapes: any rank; values holds their product.  Errors: io_error.
void write_npy(const std::string& path, const std::vector<int64_t>& shape, const float* values);

}  // namespace liuli
