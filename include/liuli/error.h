// The one exception type that crosses the library's edges.
#pragma once
#include <stdexcept>
#include <string>

namespace liuli {

/// Why a call could not be done. Each edge maps the kind to its own language (the CLI: to an exit code).
enum class ErrorCode {
  not_found,         ///< a file, tensor, point or name that is not there
  invalid_argument,  ///< the caller asked for something that makes no sense
  corrupt_file,      ///< the bytes of a file contradict its format or themselves
  unsupported,       ///< well formed, but Liuli cannot run it (yet); running on would give wrong numbers
  out_of_memory,     ///< a limit of memory or of a context
  io_error,          ///< the system refused to read or write: permission, disk full
  cancelled,         ///< the caller stopped the work
};

/// A caller or a file is wrong. The message is one line, names the place and both values that disagree.
/// (When Liuli itself is wrong, LIULI_CHECK aborts; user input must never reach one.)
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

/// The snake_case name of a kind, as printed in JSON and tests.
const char* to_string(ErrorCode code);

}  // namespace liuli
