// Numbers that go to Python without being copied.
#pragma once
#include <cstdint>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace liuli::python {

using Array = nanobind::ndarray<nanobind::numpy, const float>;

/// A read-only NumPy array over the vector's own memory, which lives as long as the array and its views do.
/// Needs the GIL.
Array owned_array(std::vector<float>&& values, const std::vector<int64_t>& shape);

}  // namespace liuli::python
