// llama.cpp's own benchmark on the same file, run turn and turn about with ours.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/bench_measure.h"

namespace liuli::cli {

/// llama-bench, as a program to run.
struct BenchPeer {
  std::string path;   ///< "" when no peer was asked for
  std::string model;  ///< the file
  int threads = 0;
  std::string cache_type;  ///< of keys and values, with flash attention; "": the peer's own choice
};

/// What a run of another program left.
struct ProgramRun {
  std::string output;
  double seconds = 0;
  int64_t peak_memory = 0;  ///< bytes
};

/// Runs a program and waits. Errors: not_found (it cannot be started), invalid_argument (it failed; says with what).
ProgramRun run_program(const std::vector<std::string>& command);

/// Runs every case once in one call and appends its rate to the results' peer_rates; cases of several sequences have no
/// counterpart. Returns the peer's peak memory. Errors: as run_program, and for output that is not llama-bench's.
int64_t run_peer(const BenchPeer& peer, std::vector<BenchResult>& results);

/// Seconds from the start of the program to the end of a prompt of n tokens, without a warm-up. Errors: as run_program.
double peer_first_token_seconds(const BenchPeer& peer, int n);

}  // namespace liuli::cli
