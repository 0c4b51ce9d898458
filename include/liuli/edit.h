// Changes to a run, as data: what is changed, where, and into what.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "liuli/hook.h"

namespace liuli {

class Engine;

/// Indices begin … end − 1 of one axis; negative ones count from the end.
struct IndexRange {
  static constexpr int kEnd = std::numeric_limits<int>::max();
  int begin = 0, end = kEnd;
};

enum class EditAction {
  set,        ///< x = value
  add,        ///< x += value: steering
  scale,      ///< x *= value; 0 ablates
  mean,       ///< x = mean over the positions of the reference run
  resample,   ///< x = the reference run's value at a random position
  patch,      ///< x = the reference run's value at the same position, or at from_token
  freeze,     ///< patch from the unedited run: a norm's sigma stays what it was while other edits act
  knock_out,  ///< score = −inf before the softmax: the query does not see the key
  drop,       ///< an expert's weight becomes 0
  reroute,    ///< tokens of one expert go to another
  weight,     ///< a row of a weight matrix becomes another one, by y[row] += (new − old) · x
};

struct Edit {
  /// A point, with * for any characters; of `drop` and `reroute` an expert ("blocks.1.mlp.experts.5"); of `weight` a weight
  /// ("blocks.3.mlp.down.weight").
  std::string at;
  /// Which part of it, one range list per axis in the order of the point's shape; missing ones mean everything. Of
  /// `weight`: row and column. Tokens count over the prompt and what is generated.
  std::vector<std::vector<IndexRange>> index;
  EditAction action = EditAction::set;
  /// One number for all, or as many as the last axis has.
  std::vector<float> value = {0};
  std::vector<int> from;          ///< tokens of the reference run; empty: this prompt, unedited
  std::optional<int> from_token;  ///< patch: every token gets this position's value
  uint64_t seed = 0;              ///< resample
  int to_expert = -1;             ///< reroute
  bool renormalise = false;       ///< drop: the other experts' weights grow so that their sum stays
  /// weight: set, add or scale the row by `value`
  EditAction row_action = EditAction::set;
};

/// Reads one edit in short form:
///
///     blocks.3.resid_post[5,:] *= 0            blocks.*.attn.z[:,3] = mean
///     blocks.9.mlp.post[-1,447] = 0            blocks.3.resid_pre = patch:"The other prompt"
///     blocks.6.resid_pre += @direction.npy     blocks.2.attn.attn_scores[3,-1,0:4] = knock_out
///     blocks.0.ln1.sigma = freeze              blocks.1.mlp.experts.5 = drop
///
/// Errors: invalid_argument, naming the piece; those of files.
Edit parse_edit(const Engine& engine, const std::string& text);
/// Reads {"at", "tokens", "heads", "keys", "coordinates" or "index", "do", "value" or "vector", "from", …} or an array of
/// such objects; `place` begins every message (docs/edits.md lists the keys). Errors: invalid_argument.
std::vector<Edit> parse_edits_json(const Engine& engine, const std::string& json, const std::string& place);

/// Edits made ready for runs of one prompt.
class EditHooks {
 public:
  /// Runs what the edits need to know (reference runs, the unedited prompt). n_generated: how many tokens may follow the
  /// prompt. Errors: not_found (no such point or weight; names the nearest), invalid_argument (an index out of range, a
  /// value of the wrong length, an edit that the mask makes void, a point that the action does not fit).
  EditHooks(Engine& engine, const std::vector<Edit>& edits, const std::vector<int>& prompt,
            int n_generated = 0);
  ~EditHooks();
  EditHooks(EditHooks&&) noexcept;

  const std::vector<Hook>& hooks() const { return hooks_; }
  /// After a run. Errors: not_found: an edit that touched nothing (a token that was not reached, an expert not chosen).
  void require_all_applied() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
  std::vector<Hook> hooks_;
};

}  // namespace liuli
