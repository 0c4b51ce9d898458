// liuli::Error becomes the exception of liuli/errors.py that stands for its code.
#pragma once

namespace liuli::python {

void translate_errors();

}  // namespace liuli::python
