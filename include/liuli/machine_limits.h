// What a machine can do at most, and what tokens ask of it: the two sides of a roofline.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace liuli {

class Engine;

/// A loop of one instruction over registers; a multiplication and an addition count as two operations.
struct ArithmeticPeak {
  std::string name;  ///< "f32 FMA", "bf16 dot products", "int8 dot products", "bf16 tiles"
  std::string isa;   ///< the level that has the instruction
  double ops_per_second = 0;
};

struct MachineLimits {
  int threads = 0;
  double read_bytes_per_second = 0;   ///< memory read once, in order, by all threads
  std::vector<ArithmeticPeak> peaks;  ///< of the level in use and of those below it

  /// The highest peak of what prompts multiply by default, floats or 16-bit integers (`integer`: of the 8-bit ones that generated
  /// tokens are made of); 0 when there is none.
  double highest(bool integer) const;
};

/// Measures for about `seconds` per limit, each the best of several windows. Takes 256 MiB per thread meanwhile. Errors:
/// invalid_argument, out_of_memory.
MachineLimits measure_machine_limits(int threads, double seconds = 0.5);

/// What n tokens of one sequence ask for, in one pass or one by one.
struct TokenWork {
  double weight_bytes =
      0;  ///< read by one pass (of a layer's experts: as many as its rows choose, evenly drawn)
  double cache_bytes = 0;    ///< of keys and values, read once for each of the tokens
  double product_ops = 0;    ///< of matrices, without the output matrix
  double output_ops = 0;     ///< of the output matrix, for each of the tokens
  double attention_ops = 0;  ///< scores and weighted sums over the visible keys
  /// Of both, the last block's behind its keys and values: a prompt needs them for its last token only, as long as nobody
  /// watches.
  double last_block_ops = 0;
};

/// Of `n` tokens behind `depth` others. together: rows of one pass, for the experts. Errors: invalid_argument (only a
/// tokenizer was loaded).
TokenWork token_work(const Engine& engine, int64_t depth, int64_t n, int64_t together);

}  // namespace liuli
