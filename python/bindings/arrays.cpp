#include "arrays.h"

#include <memory>

namespace liuli::python {

namespace nb = nanobind;

Array owned_array(std::vector<float>&& values, const std::vector<int64_t>& shape) {
  auto kept = std::make_unique<std::vector<float>>(std::move(values));
  const float* data = kept->data();
  nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<std::vector<float>*>(p); });
  kept.release();
  const std::vector<size_t> sizes(shape.begin(), shape.end());
  return Array(data, sizes.size(), sizes.data(), owner);
}

}  // namespace liuli::python
