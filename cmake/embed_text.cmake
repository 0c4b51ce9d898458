# cmake -DINPUT=… -DOUTPUT=… -DHEADER=… -DNAME=… -P embed_text.cmake: a C++ source that defines the string_view NAME
# with the bytes of a text file.
file(READ "${INPUT}" text)
set(delimiter "liuli_text")
string(FIND "${text}" ")${delimiter}\"" inside)
if(NOT inside EQUAL -1)
  message(FATAL_ERROR "${INPUT} contains the end of its own literal")
endif()
file(WRITE "${OUTPUT}" "#include \"${HEADER}\"\n\nnamespace liuli {\nconst std::string_view ${NAME} = R\"${delimiter}(")
file(APPEND "${OUTPUT}" "${text}")
file(APPEND "${OUTPUT}" ")${delimiter}\";\n}  // namespace liuli\n")
