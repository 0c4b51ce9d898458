// Edits as hooks.
#include "liuli/edit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "core/rng.h"
#include "engine/edit_experts.h"
#include "engine/edit_places.h"
#include "engine/edit_weights.h"
#include "liuli/engine.h"
#include "trace/point_selection.h"

namespace liuli {

struct EditHooks::State {
  std::vector<std::string> names;
  std::vector<int64_t> applied;  ///< values touched, per edit
};

namespace {

[[noreturn]] void bad(const std::string& message) { throw Error(ErrorCode::invalid_argument, message); }

bool reads_a_run(EditAction action) {
  return action == EditAction::mean || action == EditAction::resample || action == EditAction::patch ||
         action == EditAction::freeze;
}

// One value of a run that something else replaces, and how.
class ValueEdit {
 public:
  ValueEdit(const Edit& edit, EditTarget target, const ModelConfig& config)
      : edit_(edit), target_(std::move(target)), last_size_(target_.last_size(config)) {
    const auto n = static_cast<int64_t>(edit.value.size());
    const bool plain = edit.action <= EditAction::scale;
    if (plain && n != 1 && n != last_size_)
      bad(fmt::format("{}: the vector has {} values, expected 1 or {}", target_.place.name(), n, last_size_));
  }

  const EditTarget& target() const { return target_; }
  bool scores() const { return target_.axes[0] != Axis::token; }

  /// The value at this place in the run it is taken from.
  void take_reference(TracedTensor tensor, size_t prompt_tokens) {
    reference_ = std::move(tensor);
    n_reference_ = reference_.shape[scores() ? 1 : 0];
    const std::string name = target_.place.name();
    if (scores() && (edit_.action == EditAction::mean || n_reference_ != static_cast<int64_t>(prompt_tokens)))
      bad(fmt::format(
          "{}: scores can be taken from a run of as many tokens only (this prompt has {}, the other {}), and "
          "have no mean",
          name, prompt_tokens, n_reference_));
    if (edit_.from_token) check_from_token();
    const auto last =
        std::min(target_.choice[scores() ? 1 : 0].last(), static_cast<int64_t>(prompt_tokens) - 1);
    if (edit_.action == EditAction::patch && !edit_.from_token && last >= n_reference_)
      bad(fmt::format("{}: the other prompt has {} tokens, the patch goes up to token {}", name, n_reference_,
                      last));
    if (edit_.action == EditAction::mean) form_mean();
  }

  /// Changes what of the value is meant; returns how much that was.
  int64_t apply(const HookValue& v) const {
    const size_t rank = v.shape.size();
    std::vector<std::vector<Chosen>> chosen(3, {{0, 0}});
    for (size_t axis = 0; axis < rank; axis++) chosen[axis] = choose(v, axis);
    int64_t touched = 0;
    for (const Chosen& a : chosen[0])
      for (const Chosen& b : chosen[1]) {
        if (rank == 3 && edit_.action == EditAction::knock_out) touched += knock_out(v, a, b, chosen[2]);
        if (edit_.action == EditAction::knock_out) continue;
        for (const Chosen& c : chosen[2]) {
          float* x = v.data + a.local * v.strides[0] + (rank > 1 ? b.local * v.strides[1] : 0) +
                     (rank > 2 ? c.local * v.strides[2] : 0);
          touched += change(*x, {a.absolute, b.absolute, c.absolute}, rank);
        }
      }
    return touched;
  }

 private:
  struct Chosen {
    int64_t local, absolute;
  };
  using Index = std::array<int64_t, 3>;

  void check_from_token() const {
    if (*edit_.from_token < -n_reference_ || *edit_.from_token >= n_reference_)
      bad(fmt::format("{}: the other prompt has {} tokens, the patch takes token {}", target_.place.name(),
                      n_reference_, *edit_.from_token));
  }

  void form_mean() {
    const size_t width = reference_.values.size() / static_cast<size_t>(n_reference_);
    std::vector<double> sums(width);
    for (size_t i = 0; i < reference_.values.size(); i++)
      sums[i % width] += static_cast<double>(reference_.values[i]);
    mean_.resize(width);
    for (size_t j = 0; j < width; j++)
      mean_[j] = static_cast<float>(sums[j] / static_cast<double>(n_reference_));
  }

  std::vector<Chosen> choose(const HookValue& v, size_t axis) const {
    const bool token = target_.axes[axis] == Axis::token;
    std::vector<Chosen> chosen;
    for (int64_t i = 0; i < v.shape[axis]; i++) {
      const int64_t absolute = token ? v.first_position + (v.tokens != nullptr ? v.tokens[i] : i) : i;
      if (target_.choice[axis].has(absolute)) chosen.push_back({i, absolute});
    }
    return chosen;
  }

  int64_t knock_out(const HookValue& v, const Chosen& head, const Chosen& token,
                    const std::vector<Chosen>& keys) const {
    float* row = v.data + head.local * v.strides[0] + token.local * v.strides[1];
    int64_t touched = 0;
    for (const Chosen& key : keys)
      if (std::isfinite(row[key.local])) {
        row[key.local] = -INFINITY;
        touched++;
      }
    const int64_t visible = std::min<int64_t>(v.shape[2], token.absolute + 1);
    if (touched > 0 && std::all_of(row, row + visible, [](float s) { return std::isinf(s); }))
      bad(fmt::format("{}: token {} of head {} would see no key at all", v.name, token.absolute,
                      head.absolute));
    return touched;
  }

  // The index of a value in the run it is taken from, tokens exchanged; −1: that run has no such token.
  int64_t reference_index(Index at, size_t rank) const {
    const size_t token_axis = scores() ? 1 : 0;
    int64_t& token = at[token_axis];
    if (edit_.action == EditAction::resample)
      token = static_cast<int64_t>(
          Rng(edit_.seed, static_cast<uint64_t>(token)).below(static_cast<uint64_t>(n_reference_)));
    else if (edit_.from_token)
      token = *edit_.from_token < 0 ? *edit_.from_token + n_reference_ : *edit_.from_token;
    int64_t flat = 0;
    for (size_t axis = 0; axis < rank; axis++) {
      if (at[axis] >= reference_.shape[axis]) return -1;
      flat = flat * reference_.shape[axis] + at[axis];
    }
    return flat;
  }

  int64_t change(float& x, const Index& at, size_t rank) const {
    const float value = edit_.value[edit_.value.size() == 1 ? 0 : static_cast<size_t>(at[rank - 1])];
    switch (edit_.action) {
      case EditAction::set:
        x = value;
        return 1;
      case EditAction::add:
        x += value;
        return 1;
      case EditAction::scale:
        x *= value;
        return 1;
      case EditAction::mean:
        x = mean_[static_cast<size_t>(rank == 3 ? at[1] * reference_.shape[2] + at[2] : at[1])];
        return 1;
      default:
        break;
    }
    const int64_t from = reference_index(at, rank);
    if (from < 0) return 0;
    x = reference_.values[static_cast<size_t>(from)];
    return 1;
  }

  Edit edit_;
  EditTarget target_;
  int64_t last_size_;
  TracedTensor reference_;
  int64_t n_reference_ = 0;
  std::vector<float> mean_;
};

class Compiler {
 public:
  Compiler(Engine& engine, const std::vector<int>& prompt, int n_generated,
           std::shared_ptr<EditHooks::State> state)
      : engine_(engine),
        prompt_(prompt),
        n_generated_(n_generated),
        length_{static_cast<int64_t>(prompt.size()), static_cast<int64_t>(prompt.size()) + n_generated},
        state_(std::move(state)) {}

  std::vector<Hook> compile(const Edit& edit) {
    index_ = state_->applied.size();
    state_->names.push_back(edit.at);
    state_->applied.push_back(0);
    switch (edit.action) {
      case EditAction::weight:
        return weight_hooks(engine_, edit, prompt_, n_generated_, counter());
      case EditAction::drop:
        return drop_hooks(engine_.config(), edit, tokens_of(edit), counter());
      case EditAction::reroute:
        return reroute_hooks(engine_.config(), edit, tokens_of(edit), counter());
      default:
        return value_hooks(edit);
    }
  }

 private:
  std::function<void(int64_t)> counter() const {
    return [state = state_, index = index_](int64_t n) { state->applied[index] += n; };
  }

  AxisChoice tokens_of(const Edit& edit) const {
    const std::vector<IndexRange> all;
    return {edit.at + ": token", edit.index.empty() ? all : edit.index[0], length_.total, length_.prompt};
  }

  std::vector<Hook> value_hooks(const Edit& edit) const {
    auto edits = std::make_shared<std::map<std::string, ValueEdit>>();
    Hook hook;
    for (EditTarget& target : find_targets(engine_.config(), edit, length_)) {
      hook.points.push_back(target.place.name());
      edits->emplace(target.place.name(), ValueEdit(edit, std::move(target), engine_.config()));
    }
    if (reads_a_run(edit.action)) read_run(edit, hook.points, *edits);
    hook.call = [edits, count = counter()](const HookValue& v) { count(edits->at(v.name).apply(v)); };
    return {hook};
  }

  void read_run(const Edit& edit, const std::vector<std::string>& points,
                std::map<std::string, ValueEdit>& edits) const {
    if (engine_.config().is_encoder_decoder())
      throw Error(ErrorCode::unsupported,
                  edit.at + ": values of another run of an encoder-decoder cannot be named");
    for (const Place& place : select_places(engine_.config(), points))
      if (place.expert >= 0)
        throw Error(ErrorCode::unsupported,
                    place.name() +
                        ": an expert's values exist for some tokens only; they cannot be "
                        "taken from another run");
    const std::vector<int>& ids = edit.from.empty() ? prompt_ : edit.from;
    for (TracedTensor& tensor : engine_.trace(ids, points)) {
      const std::string name = tensor.name;
      edits.at(name).take_reference(std::move(tensor), prompt_.size());
    }
  }

  Engine& engine_;
  const std::vector<int>& prompt_;
  int n_generated_;
  RunLength length_;
  std::shared_ptr<EditHooks::State> state_;
  size_t index_ = 0;
};

}  // namespace

EditHooks::EditHooks(Engine& engine, const std::vector<Edit>& edits, const std::vector<int>& prompt,
                     int n_generated)
    : state_(std::make_shared<State>()) {
  Compiler compiler(engine, prompt, n_generated, state_);
  for (const Edit& edit : edits)
    for (Hook& hook : compiler.compile(edit)) hooks_.push_back(std::move(hook));
}
EditHooks::~EditHooks() = default;
EditHooks::EditHooks(EditHooks&&) noexcept = default;

void EditHooks::require_all_applied() const {
  for (size_t i = 0; i < state_->names.size(); i++)
    if (state_->applied[i] == 0)
      throw Error(
          ErrorCode::not_found,
          fmt::format(
              "the edit of {} changed nothing: the run had no such value (a token that was not reached, an "
              "expert that was not chosen)",
              state_->names[i]));
}

}  // namespace liuli
