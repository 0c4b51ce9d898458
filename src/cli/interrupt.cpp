#include "cli/interrupt.h"

#include <csignal>

#include "liuli/error.h"

namespace liuli::cli {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch lock-free atomics only");

void on_sigint(int) { interrupted.store(true); }

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted.store(false);
  struct sigaction action = {};
  action.sa_handler = on_sigint;
  // RESETHAND: the second Ctrl-C kills. RESTART: reads and writes under way are not cut short by the first.
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

InterruptGuard::~InterruptGuard() { std::signal(SIGINT, SIG_DFL); }

const std::atomic<bool>& InterruptGuard::flag() { return interrupted; }

void throw_if_interrupted() {
  if (interrupted.load()) throw Error(ErrorCode::cancelled, "stopped by Ctrl-C");
}

}  // namespace liuli::cli
