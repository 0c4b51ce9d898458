#include "engine/edit_experts.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "liuli/error.h"
#include "trace/point_selection.h"

namespace liuli {
namespace {

[[noreturn]] void bad(const std::string& message) { throw Error(ErrorCode::invalid_argument, message); }

// "blocks.1.mlp.experts.5", with wildcards.
std::vector<Place> experts_at(const ModelConfig& config, const std::string& at) {
  if (at.find(".experts.") == std::string::npos)
    bad(fmt::format("{}: expected an expert, like blocks.1.mlp.experts.5", at));
  return select_places(config, {at + ".out"});
}

// The experts that each row of a pass goes to, written by one hook and read by the next.
struct Choice {
  std::vector<int> ids;
  int64_t width = 0;
};

void drop_expert(const HookValue& weights, const Choice& choice, int expert, bool renormalise,
                 const AxisChoice& tokens, int64_t& dropped) {
  for (int64_t i = 0; i < weights.shape[0]; i++) {
    if (!tokens.has(weights.first_position + i)) continue;
    float* row = weights.data + i * weights.strides[0];
    double all = 0, left = 0;
    bool found = false;
    for (int64_t k = 0; k < choice.width; k++) {
      all += static_cast<double>(row[k]);
      if (choice.ids[static_cast<size_t>(i * choice.width + k)] == expert) {
        row[k] = 0;
        found = true;
      }
      left += static_cast<double>(row[k]);
    }
    dropped += found;
    if (!found || !renormalise) continue;
    if (!(std::fabs(left) > 0))
      bad(fmt::format("{}: no expert is left whose weight could grow", weights.name));
    for (int64_t k = 0; k < choice.width; k++) row[k] *= static_cast<float>(all / left);
  }
}

}  // namespace

// A hook that notes which experts were chosen, then one that works on their weights.
std::vector<Hook> drop_hooks(const ModelConfig& config, const Edit& edit, const AxisChoice& tokens,
                             std::function<void(int64_t)> count) {
  std::vector<Hook> hooks;
  for (const Place& expert : experts_at(config, edit.at)) {
    auto choice = std::make_shared<Choice>();
    const Place ids{Point::mlp_expert_ids, expert.layer, expert.stack};
    const Place weights{Point::mlp_expert_weights, expert.layer, expert.stack};
    hooks.push_back({{ids.name()}, [choice](const HookValue& v) {
                       choice->width = v.shape[1];
                       choice->ids.clear();
                       for (int64_t i = 0; i < v.shape[0]; i++)
                         for (int64_t k = 0; k < v.shape[1]; k++)
                           choice->ids.push_back(static_cast<int>(v.at({i, k})));
                     }});
    hooks.push_back(
        {{weights.name()},
         [choice, number = expert.expert, renormalise = edit.renormalise, tokens, count](const HookValue& v) {
           int64_t dropped = 0;
           drop_expert(v, *choice, number, renormalise, tokens, dropped);
           count(dropped);
         }});
  }
  return hooks;
}

std::vector<Hook> reroute_hooks(const ModelConfig& config, const Edit& edit, const AxisChoice& tokens,
                                std::function<void(int64_t)> count) {
  const int64_t n_experts = config.experts.n_experts;
  if (edit.to_expert < 0 || edit.to_expert >= n_experts)
    bad(fmt::format("{}: there is no expert {} among {}", edit.at, edit.to_expert, n_experts));
  std::vector<Hook> hooks;
  for (const Place& expert : experts_at(config, edit.at)) {
    const Place ids{Point::mlp_expert_ids, expert.layer, expert.stack};
    hooks.push_back({{ids.name()},
                     [from = static_cast<float>(expert.expert), to = static_cast<float>(edit.to_expert),
                      tokens, count](const HookValue& v) {
                       for (int64_t i = 0; i < v.shape[0]; i++) {
                         float* row = v.data + i * v.strides[0];
                         const bool already = std::find(row, row + v.shape[1], to) != row + v.shape[1];
                         float* found = std::find(row, row + v.shape[1], from);
                         if (!tokens.has(v.first_position + i) || found == row + v.shape[1] || already)
                           continue;
                         *found = to;
                         count(1);
                       }
                     }});
  }
  return hooks;
}

}  // namespace liuli
