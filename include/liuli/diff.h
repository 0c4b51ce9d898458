// Two runs of one text beside each other: where their predictions differ, and where on the way it began.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "liuli/hook.h"

namespace liuli {

class Engine;

constexpr int64_t kLongestDefaultContext = 2048;

struct DiffSettings {
  int context = 0;  ///< tokens per window, each run from nothing; 0: 2048, or what the shorter context allows
  int trace_positions = 256;  ///< inner values are compared for so many positions of the first window; 0: not
  double threshold = 0;       ///< relative error that counts as divergence; 0: by class, see DiffReport
  int worst = 5;              ///< positions to keep in full
  int chunk = 0;              ///< positions per pass; changes no bit; 0: as memory suggests
  std::vector<Hook> hooks;    ///< change the first run on its way; the reference stays as it is
  std::function<void(int64_t done, int64_t total)> on_progress;  ///< tokens; may throw to stop
};

struct TokenProbability {
  int token = 0;
  double probability = 0;
};

/// One position's two predictions of what comes next.
struct PositionDiff {
  int64_t position = 0;
  int token = 0;  ///< the token at this position
  int next = -1;  ///< the token that really follows; −1 at the end of a window
  double kl = 0;  ///< in nats
  std::vector<TokenProbability> top, reference_top;  ///< the five likeliest
};

/// One named point in both runs, over all traced positions.
struct PointDiff {
  std::string name, formula;
  int layer = -1;                   ///< −1 outside the blocks
  double error = 0;                 ///< ‖a − b‖ / ‖b‖ over everything traced; b is the reference
  double position_error = 0;        ///< the largest ‖a − b‖ / ‖b‖ of one position
  int64_t worst_position = 0;       ///< … and which
  std::vector<int64_t> coordinate;  ///< where |a − b| is largest, in the order of the point's shape
  double value = 0, reference = 0;  ///< a and b there
};

/// The reference is called b. KL(b ‖ a) = Σ p_b (ln p_b − ln p_a), in double from the logits; a position with a
/// logit that is not a number counts as infinite.
struct DiffReport {
  int64_t positions = 0, windows = 0, context = 0;
  std::vector<double> kl;  ///< of every position
  double mean_kl = 0, median_kl = 0, p99_kl = 0, max_kl = 0;
  double top1_agreement = 0;     ///< share of positions with the same likeliest token
  double top5_overlap = 0;       ///< mean share of common tokens among the five likeliest
  int64_t predicted_tokens = 0;  ///< the perplexities are over these: every token of a window after its first
  double perplexity = 0, reference_perplexity = 0;
  double nll_difference = 0, nll_difference_error = 0;  ///< mean −ln p of a minus that of b; standard error
  std::vector<PositionDiff> worst;                      ///< largest KL first

  int64_t traced_positions = 0;
  std::string not_traced;         ///< why no inner value was compared, or ""
  std::vector<PointDiff> points;  ///< those both models have, in the order a token meets them
  /// Automatic: 3e-2 where a run is in the prompt or decode class (healthy ones reach 1.6e-2), else 1e-3.
  double threshold = 0;
  /// Index of the first point whose error exceeds the threshold. Means of norms do not count: they may be
  /// zero but for rounding, and a wrong one shows in `centered`, two steps on.
  std::optional<size_t> first_divergence;
};

/// Runs both engines over the tokens in step, a few positions at a time, so that memory stays bounded.
/// Errors: invalid_argument (vocabularies of different size, no tokens, tokens or settings out of range); not_found (a hook
/// that no value passed).
DiffReport diff(Engine& engine, Engine& reference, const std::vector<int>& ids,
                const DiffSettings& settings = {});

}  // namespace liuli
