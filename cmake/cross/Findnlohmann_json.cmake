# nlohmann-json is headers only.
include(${CMAKE_CURRENT_LIST_DIR}/host_headers.cmake)
liuli_host_headers(nlohmann)
if(NOT TARGET nlohmann_json::nlohmann_json)
  add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED GLOBAL)
  target_include_directories(nlohmann_json::nlohmann_json INTERFACE ${CMAKE_BINARY_DIR}/host_headers)
endif()
set(nlohmann_json_FOUND TRUE)
