// Numbers that go to Python without being copied.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace liuli::python {

using Array = nanobind::ndarray<nanobind::numpy, const float>;

/// A read-only NumPy array over the vector's own memory, which lives as long as the array and its views do.
/// Needs the GIL.
Array owned_array(std::vector<float>&& values, const std::vector<int64_t>& shape);

/// Memory for a capture's arrays; what it holds is anything. What is smaller than a few MiB shares blocks, so that all of
/// it lies in large pages, and blocks given back serve the next capture: getting new pages from the system took longer than
/// filling them. The system may take pages of idle blocks whenever it is short of memory.
class ArrayMemory {
 public:
  /// n floats; they live as long as the pointer. Throws Error out_of_memory.
  std::shared_ptr<float> floats(int64_t n);

 private:
  struct Block;
  std::shared_ptr<Block> block_;
  size_t used_ = 0;
};

/// A read-only NumPy array over such memory. Needs the GIL.
Array shared_array(std::shared_ptr<float> values, const std::vector<int64_t>& shape);

}  // namespace liuli::python
