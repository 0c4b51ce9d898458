// NumPy's array file, version 1.0.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace liuli {

/// Writes f32 values, last index fastest, as numpy.load reads them.
/// Shapes: any rank; values holds their product.  Errors: io_error.
void write_npy(const std::string& path, const std::vector<int64_t>& shape, const float* values);

/// What stands before the values of an array of `type` ("<f4", "|S12").
std::string npy_header(const std::vector<int64_t>& shape, const std::string& type = "<f4");

/// An array of f32 values.
struct NpyArray {
  std::string name;  ///< within an .npz; "" in a file of its own
  std::vector<int64_t> shape;
  std::vector<float> values;
};
/// Reads what numpy.save wrote: f2, f4, f8, i1 … i8, u1 … u4 and bool, little-endian, C order; rounded to f32.
/// Errors: not_found, io_error, corrupt_file, unsupported (another type or order), naming `path`.
NpyArray read_npy(const std::string& path);
NpyArray read_npy(const std::string& path, const uint8_t* bytes, size_t size);

}  // namespace liuli
