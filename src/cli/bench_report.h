// What `liuli bench` says: a table for people, markdown, JSON, and a roofline.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/bench_measure.h"

namespace liuli::cli {

/// The peer beside us; empty path: none.
struct PeerReport {
  std::string path;
  int64_t peak_memory = 0;         ///< bytes
  double first_token_seconds = 0;  ///< from its start to the end of the first prompt
};

struct BenchReport {
  std::string model, name, isa, product_class, cache_type;
  std::string prompt_products;  ///< of the prompt class: "bf16", "int8"
  int threads = 0, repetitions = 0;
  double load_seconds = 0;
  std::string panel_file;   ///< that was mapped; "": packed
  int64_t peak_memory = 0;  ///< bytes
  double other_load = 0;    ///< share of the machine that other processes took while it was measured
  MachineLimits limits;     ///< threads = 0: not measured
  PeerReport peer;
  std::vector<BenchResult> results;
};

/// The limits that a case is held against: memory for all of them, the float peak for prompts, the int8 peak for prompts and
/// generated tokens whose products are integer ones.
double arithmetic_limit(const BenchReport& report, const BenchCase& bench_case);
/// Bytes or operations per second at the median time.
double bytes_per_second(const BenchResult& result);
double ops_per_second(const BenchResult& result);
/// "prompt 512", "generation 64, depth 4096, batch 8".
std::string label_of(const BenchCase& bench_case);

std::string bench_table(const BenchReport& report, bool markdown);
nlohmann::ordered_json bench_json(const BenchReport& report);
/// Operations per second over operations per byte, both logarithmic: the limits as roofs, the tests as points below them.
std::string bench_roofline(const BenchReport& report);

}  // namespace liuli::cli
