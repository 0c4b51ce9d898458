# fmt without its library: the headers are enough, and Debian's library is the host's.
include(${CMAKE_CURRENT_LIST_DIR}/host_headers.cmake)
liuli_host_headers(fmt)
liuli_host_headers(hwy)  # src/kernels includes Highway, which is not a CMake package of ours: it comes along here
if(NOT TARGET fmt::fmt)
  add_library(fmt::fmt INTERFACE IMPORTED GLOBAL)
  target_include_directories(fmt::fmt INTERFACE ${CMAKE_BINARY_DIR}/host_headers)
  target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
endif()
set(fmt_FOUND TRUE)
