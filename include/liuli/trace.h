// Seeing inside a run: named points and what they held.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "liuli/config.h"
#include "liuli/hook.h"

namespace liuli {

/// A value seen at a point, over all tokens of the prompt. Last index fastest.
struct TracedTensor {
  std::string name;  ///< "blocks.3.attn.pattern"
  std::vector<int64_t> shape;
  std::vector<float> values;
};

/// What some models read beside a text's tokens.
struct BesideTheTokens {
  std::vector<int> source = {};       ///< an encoder-decoder's source text
  std::vector<int> token_types = {};  ///< BERT: the segment of each token; empty: all 0
};

/// Takes the values of a trace as they come, for captures that should not be held in memory.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  /// Before the run: the names and shapes of everything that will come (without values).
  virtual void begin(const std::vector<TracedTensor>& tensors) = 0;
  /// n values of one of them, which belong at `first` (last index fastest). What never comes is 0.
  virtual void write(size_t tensor, int64_t first, const float* values, int64_t n) = 0;
  /// Memory for the whole of one of them, if the values shall be put there instead of going through write(); what it holds
  /// does not matter.
  virtual float* memory(size_t) { return nullptr; }
};

/// Cuts every captured value down, as Python writes it ("3:7", "0,2,-1", "::2"); "": all. One value alone is cut by
/// brackets behind its name: "blocks.3.attn.pattern[:,2,:5]" (an index by itself takes its axis away).
struct TraceSlices {
  std::string tokens;  ///< positions of the prompt
  std::string heads;   ///< query heads; of keys and values those that they read
  std::string layers;  ///< what is in no block stays
};

struct TraceSettings {
  int chunk = 512;                       ///< tokens per pass; changes no bit
  int64_t max_bytes = int64_t{4} << 30;  ///< a larger capture is refused before it runs
  BesideTheTokens beside = {};
  int stop_at_layer = -1;  ///< run the first so many blocks only; what lies behind them is not seen; −1: all
  std::vector<Hook> hooks = {};  ///< change values on the way; the capture sees what they left
  TraceSlices slices = {};
  TraceSink* sink =
      nullptr;              ///< takes the values in place of the result, which then has names and shapes only
  bool with_logits = true;  ///< let the run go on to the logits (needed for `logits` and ln_final)
};

/// One value of one model: "blocks.3.attn.pattern", and TransformerLens's name of it or "".
struct PointName {
  std::string name, alias;
};
/// Every value a model has, in the order a token meets them.
std::vector<PointName> list_point_names(const ModelConfig& config);

/// One line of the table of points.
struct PointDescription {
  std::string name;   ///< "blocks.N.attn.q"
  std::string shape;  ///< "[n_tokens, n_heads, head_dim]"
  std::string formula;
  std::string alias;  ///< TransformerLens's spelling, or ""
};
/// Every point of the table, in the order a token meets them.
std::vector<PointDescription> list_points();
/// The points a model has, with its own sizes: "[n_tokens, 9, 64]".
std::vector<PointDescription> list_points(const ModelConfig& config);

}  // namespace liuli
