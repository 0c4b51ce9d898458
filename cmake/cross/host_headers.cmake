# liuli_host_headers(<package folder>): makes /usr/include/<folder> of this machine visible to the cross compiler, alone:
# the whole of /usr/include would bring the host's C library along. Header-only packages are the same for every architecture.
function(liuli_host_headers folder)
  if(NOT EXISTS /usr/include/${folder})
    message(FATAL_ERROR "cross-compiling needs the headers in /usr/include/${folder}, which are not installed")
  endif()
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/host_headers)
  file(CREATE_LINK /usr/include/${folder} ${CMAKE_BINARY_DIR}/host_headers/${folder} SYMBOLIC)
endfunction()
