// Ctrl-C: the first asks the work to stop and keeps what is there, the second kills.
#pragma once
#include <atomic>

namespace liuli::cli {

/// While one lives, SIGINT sets the flag once; a second SIGINT has the system's default effect.
class InterruptGuard {
 public:
  InterruptGuard();   ///< clears the flag
  ~InterruptGuard();  ///< SIGINT kills again
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static const std::atomic<bool>& flag();
};

/// Throws Error cancelled after a Ctrl-C; for loops whose partial result is worth nothing.
void throw_if_interrupted();

}  // namespace liuli::cli
