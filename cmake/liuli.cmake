# Helpers shared by every folder: warnings are errors, and one call per library or test.

add_library(liuli_options INTERFACE)
target_compile_options(liuli_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror)
target_include_directories(liuli_options INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)

# liuli_library(<folder> SOURCES a.cpp … LINKS liuli_core …): the library liuli_<folder>.
function(liuli_library folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(liuli_${folder} STATIC ${ARG_SOURCES})
  target_link_libraries(liuli_${folder} PUBLIC liuli_options ${ARG_LINKS})
endfunction()

# liuli_test(<name> SOURCES a_test.cpp … LINKS …): one GoogleTest program, one ctest entry.
function(liuli_test name)
  if(NOT LIULI_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE liuli_options ${ARG_LINKS} GTest::gtest GTest::gtest_main)
  target_compile_options(${name} PRIVATE -Wno-restrict)  # GCC 12 sees overlaps in "literal" + string that are not there
  target_compile_definitions(${name} PRIVATE LIULI_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name})
endfunction()
