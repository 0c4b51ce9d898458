// Where a prediction comes from: what every storey would say (logit lens), what every part adds to a logit (direct
// attribution), how the parts make up the residual stream (ledger), and where attention looks (heads).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "liuli/trace.h"

namespace liuli {

class Engine;

// ---- logit lens ----

struct LensSettings {
  /// Values [n_tokens, d_model], with * as in a trace; empty: the stream before the first block, after every attention
  /// and after every feed-forward.
  std::vector<std::string> points = {};
  std::string tokens = {};  ///< positions, as TraceSlices; "": all
  int followed =
      -1;  ///< the token to follow; −1: each position's own next one (at the end: the model's choice)
  BesideTheTokens beside = {};
};

/// One place of one position: softmax(W_U · ln_final(x)), as if the model stopped there.
struct LensCell {
  int top_token = 0;
  double top_probability = 0;
  double followed_probability = 0;
  int64_t followed_rank = 0;  ///< 1: the likeliest
  int64_t final_rank = 0;     ///< of the token that the finished model prefers here
};

struct LensRow {
  std::string point;
  std::vector<LensCell> cells;  ///< per position
};

struct LensReport {
  std::vector<int> positions;
  std::vector<int> followed;     ///< per position
  std::vector<int> final_token;  ///< per position: what the finished model prefers
  std::vector<LensRow> rows;     ///< in the order a token meets the points
  std::string product_class;
};

/// The stream goes through the model's own final norm (its sigma taken anew at every place, γ as stored) and output matrix,
/// with the soft cap where there is one. Errors: not_found, invalid_argument (points of another width), unsupported (a
/// model without an output matrix).
LensReport logit_lens(Engine& engine, const std::vector<int>& ids, const LensSettings& settings = {});

// ---- direct logit attribution ----

enum class AttributeBy {
  layer,   ///< what each attention and each feed-forward added
  head,    ///< attention split into its heads
  neuron,  ///< feed-forward split into its neurons
  token,   ///< attention split by the position it took its values from
};

struct AttributionSettings {
  int token = -1;
  int against = -1;  ///< attribute logit(token) − logit(against) instead; −1: logit(token)
  AttributeBy by = AttributeBy::layer;
  int position = -1;  ///< whose next token; negative: from the end
};

struct AttributionTerm {
  std::string
      name;  ///< "embed", "blocks.3.attn.head.2", "blocks.3.mlp.post[17]", "token 5", "blocks.3.attn.o.bias", …
  int layer = -1;  ///< −1: of no block, or of all
  int index = -1;  ///< head, neuron, or source position
  double value = 0;
};

struct AttributionReport {
  int token = -1, against = -1, position = 0;
  std::vector<AttributionTerm> terms;  ///< in the order a token meets them
  double sum = 0;                      ///< of all terms
  double logit = 0;      ///< in double from the run's last stream, before the soft cap: what sum should be
  double run_logit = 0;  ///< as the run gave it, in its class and after the soft cap
  double soft_cap = 0;   ///< 0: none
  double sigma = 0;      ///< of the final norm, held fixed
  std::string product_class;
};

/// Every part's share of a logit: term · u with u = γ ⊙ W_U[token] / sigma (a LayerNorm's mean taken out of u, its β a
/// term of its own). sigma is the run's own, held fixed; so is that of a norm on a branch's output (Gemma 3, OLMo 2), through
/// which heads, neurons and tokens are followed. The sum is exact up to float32's rounding of the stream; split
/// further (by head, neuron, token) also up to the class's rounding of the products and the cache.
/// Errors: invalid_argument (tokens, position), unsupported (post-norm models, encoder-decoders, no output matrix).
AttributionReport attribute_logit(Engine& engine, const std::vector<int>& ids,
                                  const AttributionSettings& settings);

// ---- residual ledger ----

struct LedgerSettings {
  std::string tokens = {};       ///< positions, as TraceSlices; "": all
  std::vector<int> coordinates;  ///< whose values are listed term by term
  double massive_ratio =
      100;  ///< |value| over the median |value| of its row, from which it is listed as massive
  int64_t max_bytes = int64_t{4} << 30;
};

struct LedgerTerm {
  std::string name;  ///< "embed", "blocks.3.attn_out", …
  int layer = -1;
  std::vector<double> norm;         ///< per position: ‖term‖₂
  std::vector<double> cosine;       ///< … with the final stream
  std::vector<double> share;        ///< … term · final / ‖final‖²; these add up to 1
  std::vector<double> coordinates;  ///< [positions, coordinates]
};

/// A coordinate of one position that is far larger than its neighbours.
struct MassiveActivation {
  int position = 0, coordinate = 0;
  int first_layer = 0, last_layer = 0;  ///< after which blocks it is massive
  int peak_layer = 0;
  double value = 0, median = 0;  ///< at the peak; median of |x| over the row
  double ratio = 0;
  std::string written_by;  ///< the term up to the peak that changed it most
  /// Whether it meets the published bound: |value| > 100 and > 1,000 × median (Sun et al. 2024, arXiv:2402.17762).
  bool meets_published_bound = false;
};

struct LedgerReport {
  std::vector<int> positions, coordinates;
  std::vector<LedgerTerm> terms;
  std::vector<double> final_norm;          ///< per position
  std::vector<double> final_coordinates;   ///< [positions, coordinates]
  double largest_difference = 0;           ///< max |Σ terms − final| over all positions and coordinates
  double largest_value = 0;                ///< max |final|, to judge it by
  std::vector<MassiveActivation> massive;  ///< largest |value| first
  std::string product_class;
};

/// embed + Σ attn_out + Σ mlp_out = the stream after the last block, term by term. Errors: as attribute_logit,
/// out_of_memory.
LedgerReport residual_ledger(Engine& engine, const std::vector<int>& ids,
                             const LedgerSettings& settings = {});

// ---- attention heads ----

struct HeadSummary {
  std::string name;  ///< "blocks.3.attn.head.2"
  int layer = 0, head = 0;
  double entropy = 0;       ///< mean over the positions, in nats
  double on_first = 0;      ///< mean attention to position 0, over the positions behind it
  double on_previous = 0;   ///< … to the position before
  double on_itself = 0;     ///< … to the position itself
  double distance = 0;      ///< mean of Σ pattern · |i − j|
  double induction = 0;     ///< mean attention to what followed the last earlier occurrence of the token
  double prefix_match = 0;  ///< mean attention to what followed any earlier occurrence
  double duplicate = 0;     ///< mean attention to earlier occurrences themselves
};

struct HeadsReport {
  std::vector<int> ids;
  int repeated_positions = 0;  ///< positions whose token occurred before: what the last three are means over
  std::vector<HeadSummary> heads;
  std::string product_class;
};

/// Means of every head's pattern over one text; nothing is kept of the patterns themselves. Errors: invalid_argument.
HeadsReport summarize_heads(Engine& engine, const std::vector<int>& ids, const BesideTheTokens& beside = {});

/// What the vocabulary puts before a text, then `length` random tokens, `repeats` times: what induction heads are found
/// with. Only tokens that are read back from their own text are drawn.
std::vector<int> repeated_random_tokens(const Engine& engine, int length, int repeats, uint64_t seed);

}  // namespace liuli
