#include "hooks.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "liuli/error.h"

namespace liuli::python {

namespace nb = nanobind;

namespace {

// Calls f(place in the model, index in a packed array, length) for every run of the last index.
template <class F>
void for_each_run(const HookValue& value, F&& f) {
  const size_t rank = value.shape.size();
  const int64_t run = value.shape[rank - 1];
  std::vector<int64_t> index(rank, 0);
  for (int64_t packed = 0;; packed += run) {
    f(&value.at(index), packed, run);
    size_t axis = rank - 1;
    while (axis > 0 && ++index[axis - 1] == value.shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

int64_t elements(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

// A writable array that owns a copy: it may be kept, the model's own memory is reused at once.
nb::ndarray<nb::numpy, float> copy_of(const HookValue& value) {
  auto packed = std::make_unique<float[]>(static_cast<size_t>(elements(value.shape)));
  const int64_t stride = value.strides.back();
  for_each_run(value, [&](const float* from, int64_t at, int64_t n) {
    if (stride == 1)
      std::memcpy(packed.get() + at, from, static_cast<size_t>(n) * sizeof(float));
    else
      for (int64_t i = 0; i < n; i++) packed[static_cast<size_t>(at + i)] = from[i * stride];
  });
  float* data = packed.get();
  const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<float*>(p); });
  packed.release();
  const std::vector<size_t> shape(value.shape.begin(), value.shape.end());
  return nb::ndarray<nb::numpy, float>(data, shape.size(), shape.data(), owner);
}

void write_back(const HookValue& value, const float* packed) {
  const int64_t stride = value.strides.back();
  for_each_run(value, [&](float* to, int64_t at, int64_t n) {
    if (stride == 1)
      std::memcpy(to, packed + at, static_cast<size_t>(n) * sizeof(float));
    else
      for (int64_t i = 0; i < n; i++) to[i * stride] = packed[at + i];
  });
}

// What the hook gave back, as packed floats of the right shape.
nb::object as_floats(const HookValue& value, nb::handle result) {
  const nb::object array = nb::module_::import_("numpy").attr("ascontiguousarray")(result, "float32");
  const auto shape = nb::cast<std::vector<int64_t>>(nb::list(array.attr("shape")));
  if (shape != value.shape)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the hook on {} returned an array of shape [{}], expected [{}]", value.name,
                            fmt::join(shape.begin(), shape.end(), ", "),
                            fmt::join(value.shape.begin(), value.shape.end(), ", ")));
  return array;
}

nb::object tokens_of(const HookValue& value) {
  if (value.tokens == nullptr) return nb::none();
  nb::list tokens;
  for (int64_t i = 0; i < value.shape[0]; i++) tokens.append(value.tokens[i]);
  return tokens;
}

void call_python(const nb::callable& function, const HookValue& value) {
  if (elements(value.shape) == 0) return;
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  const nb::object array = nb::cast(copy_of(value));
  const nb::object result = function(array, value.name, value.first_position, tokens_of(value));
  const nb::object final = as_floats(value, result.is_none() ? nb::handle(array) : nb::handle(result));
  const auto floats = nb::cast<nb::ndarray<const float, nb::c_contig>>(final);
  write_back(value, floats.data());
}

}  // namespace

std::vector<Hook> engine_hooks(const std::vector<PythonHook>& hooks) {
  std::vector<Hook> list;
  for (const auto& [points, function] : hooks)
    list.push_back(
        {points, [&function = function](const HookValue& value) { call_python(function, value); }});
  return list;
}

}  // namespace liuli::python
