// Every failure becomes one line on stderr and an exit code that tells its kind.
#pragma once
#include <exception>
#include <string>

#include "liuli/error.h"

namespace liuli::cli {

constexpr int kExitInternal = 1;
constexpr int kExitUsage = 2;
constexpr int kExitCancelled = 130;  ///< 128 + SIGINT, as shells count it

int exit_code(ErrorCode code);

struct Failure {
  int exit_code = kExitInternal;
  std::string code;     ///< "corrupt_file"; "internal" for what no one foresaw
  std::string message;  ///< one line
};

/// Names any exception: liuli::Error by its kind, bad_alloc as out_of_memory, a failed write as io_error.
Failure describe_failure(std::exception_ptr exception);

/// Prints `liuli: error: …`, or {"error":{"code":…,"message":…}} for programs, on stderr; returns the exit
/// code.
int report_failure(const Failure& failure, bool json);

/// The table of exit codes for `liuli --help`.
const char* exit_code_help();

}  // namespace liuli::cli
