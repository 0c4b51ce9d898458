// Vectors that edits name: files of numbers.
#pragma once
#include <string>
#include <vector>

namespace liuli {

/// The numbers of "direction.npy" (float32 or float64, any shape, C order) or "trace.safetensors:blocks.3.resid_post".
/// Errors: not_found, io_error, corrupt_file, invalid_argument (another kind of file).
std::vector<float> read_edit_vector(const std::string& place);

}  // namespace liuli
