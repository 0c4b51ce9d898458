#include "errors.h"

#include <nanobind/nanobind.h>

#include "liuli/error.h"

namespace liuli::python {

namespace nb = nanobind;

namespace {

void raise(const Error& error) {
  const nb::object exception =
      nb::module_::import_("liuli.errors").attr("from_code")(to_string(error.code()), error.what());
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
}

}  // namespace

void translate_errors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error);
    }
  });
}

}  // namespace liuli::python
