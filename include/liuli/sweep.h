// Activation patching over a whole model: which single value, taken from another run, brings an answer back?
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace liuli {

class Engine;

/// What a patched run is judged by: the logits behind the last token.
enum class SweepMetric {
  logit,             ///< of `answer`
  logit_difference,  ///< logit(answer) − logit(wrong)
  probability,       ///< of `answer`
  kl,                ///< KL(clean ‖ patched) in nats: 0 where the clean prediction is back
};

/// Two prompts of one length, and the tokens the metric asks for.
struct SweepPair {
  std::vector<int> clean, corrupt;
  int answer = -1, wrong = -1;
};

struct SweepSettings {
  std::string point = "resid_pre";  ///< a value of a block, as it is called behind "blocks.N."
  std::vector<int> layers;          ///< empty: all
  std::vector<int> positions;       ///< empty: all; negative ones count from the end
  bool by_head = false;             ///< one head at a time, where the point has heads
  std::vector<int> heads;           ///< empty: all
  SweepMetric metric = SweepMetric::logit_difference;
  bool into_clean =
      false;           ///< patch the corrupt run's values into the clean run; otherwise the other way round
  int batch_rows = 0;  ///< that go through a block together; changes no bit; 0: 2048 in f32, else 512
  /// Run every patch by itself, whole, with a hook: the plain way, which gives the same bits and takes far longer.
  bool one_by_one = false;
  /// A file that collects finished patches. If it exists, and was begun with the same prompts and settings, the sweep
  /// goes on from there. "": none.
  std::string journal;
  std::function<void(int64_t done, int64_t total)> on_progress;  ///< patches; may throw to stop
};

struct SweepResult {
  int64_t n_pairs = 0;
  std::vector<int> layers;
  std::vector<int> positions;          ///< as asked for
  std::vector<int> heads;              ///< {−1}: all heads together
  std::vector<double> clean, corrupt;  ///< the metric of the unpatched runs, per pair
  std::vector<double> values;  ///< [n_pairs, layers, positions, heads], the metric of each patched run
  /// [layers, positions, heads]: means over the pairs, and of (value − corrupt) / (clean − corrupt): 0 where a patch
  /// leaves the corrupt run's answer, 1 where it brings the clean one's.
  std::vector<double> mean_value, effect;
  int64_t patches = 0;  ///< in all
  int64_t known = 0;    ///< of these, patches that replace a value by the same bits: known without a run
  int64_t resumed = 0;  ///< … found in the journal
  double seconds = 0;
};

/// Runs both prompts of every pair, then one of them once per place with that place's value taken from the other. Blocks
/// below a patch and positions before it are not run again, patches of one block go through the rest together, and the
/// last block and the output matrix are run only where the metric looks.
///
/// Errors: invalid_argument (prompts of different length, tokens, layers, positions or heads out of range, a point that
/// is not of one token, a journal of another sweep, clean and corrupt with the same metric); not_found (no such point);
/// unsupported (a model that is not a causal decoder).
SweepResult sweep(Engine& engine, const std::vector<SweepPair>& pairs, const SweepSettings& settings = {});

}  // namespace liuli
