// liuli._core: the engine with as little Python around it as possible; liuli/*.py is what people use.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errors.h"
#include "liuli/engine.h"
#include "model.h"

NB_MODULE(_core, module) {
  module.doc() = "Liuli's engine. Use the classes of the package liuli.";
  liuli::python::translate_errors();
  module.def("active_isa", &liuli::active_isa, "The instruction set level in use, \"avx512_bf16\".");
  module.def("available_isas", &liuli::available_isas, "The instruction set levels this machine has.");
  liuli::python::bind_model(module);
}
