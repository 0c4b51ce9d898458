#include "cli/exit_codes.h"

#include <algorithm>
#include <new>
#include <system_error>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace liuli::cli {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return kExitUsage;
    case ErrorCode::not_found:
      return 3;
    case ErrorCode::corrupt_file:
      return 4;
    case ErrorCode::unsupported:
      return 5;
    case ErrorCode::out_of_memory:
      return 6;
    case ErrorCode::io_error:
      return 7;
    case ErrorCode::cancelled:
      return kExitCancelled;
  }
  return kExitInternal;
}

namespace {

Failure failure_of(ErrorCode code, const std::string& message) {
  return {exit_code(code), to_string(code), message};
}

// A message may quote text from a file; whoever reads stderr line by line must still get one line.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '\r', ' ');
  return text;
}

}  // namespace

Failure describe_failure(std::exception_ptr exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& e) {
    return failure_of(e.code(), e.what());
  } catch (const std::bad_alloc&) {
    return failure_of(ErrorCode::out_of_memory, "the system gave no more memory");
  } catch (const nlohmann::json::exception& e) {
    return failure_of(ErrorCode::invalid_argument, std::string("JSON: ") + e.what());
  } catch (const std::system_error& e) {
    return failure_of(ErrorCode::io_error, e.what());
  } catch (const std::exception& e) {
    return {kExitInternal, "internal", std::string("internal error: ") + e.what()};
  } catch (...) {
    return {kExitInternal, "internal", "internal error of an unknown kind"};
  }
}

int report_failure(const Failure& failure, bool json) {
  const std::string message = one_line(failure.message);
  if (json) {
    const nlohmann::ordered_json body = {{"error", {{"code", failure.code}, {"message", message}}}};
    fmt::print(stderr, "{}\n", body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print(stderr, "liuli: error: {}\n", message);
  }
  return failure.exit_code;
}

const char* exit_code_help() {
  return "Exit codes:\n"
         "  0 done             4 corrupt_file   the bytes of a file contradict its format\n"
         "  1 internal         5 unsupported    well formed, but Liuli cannot run it\n"
         "  2 usage            6 out_of_memory  memory or the model's context does not suffice\n"
         "  3 not_found        7 io_error       the system refused to read or write\n"
         "  130 cancelled      Ctrl-C before there was a result";
}

}  // namespace liuli::cli
