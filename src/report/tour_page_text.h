// The built page of web/, as text: web/dist/index.html, made part of the program by cmake/embed_text.cmake.
#pragma once
#include <string_view>

namespace liuli {

extern const std::string_view kTourPageText;

}  // namespace liuli
