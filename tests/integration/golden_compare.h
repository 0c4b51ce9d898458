// A model against a float64 run of the reference implementation: logits, every stored value on the way, greedy text.
#pragma once
#include <algorithm>

#include "golden_support.h"

namespace liuli::golden {

constexpr double kLogits = 2e-4, kActivations = 1e-4, kPatterns = 1e-5;

// The reference's name of a value → ours. Ours is empty for what is not a point.
inline std::string our_name(std::string name) {
  auto replace_end = [&](const std::string& from, const std::string& to) {
    if (name.size() < from.size() || name.compare(name.size() - from.size(), from.size(), from) != 0)
      return false;
    name.replace(name.size() - from.size(), from.size(), to);
    return true;
  };
  for (const char* other : {"input_ids", "logits", "loss", "greedy", "greedy_gap"})
    if (name == other) return "";
  if (name.rfind("grad.", 0) == 0 || name.rfind("train.", 0) == 0) return "";
  replace_end(".scale", ".sigma") || replace_end(".attn.q", ".attn.rot_q") ||
      replace_end(".attn.k", ".attn.rot_k") || replace_end(".attn.q_proj", ".attn.q") ||
      replace_end(".attn.k_proj", ".attn.k");
  return name;
}

// q_normed and k_normed: some references store the heads first.
inline std::vector<float> heads_first(const TracedTensor& t) {
  const int64_t tokens = t.shape[0], heads = t.shape[1], width = t.shape[2];
  std::vector<float> out(t.values.size());
  for (int64_t i = 0; i < tokens; i++)
    for (int64_t h = 0; h < heads; h++)
      for (int64_t d = 0; d < width; d++)
        out[static_cast<size_t>((h * tokens + i) * width + d)] =
            t.values[static_cast<size_t>((i * heads + h) * width + d)];
  return out;
}

struct Mode {
  const char* name;
  ProductClassChoice product_class;
  bool exact;
};
constexpr Mode kModes[] = {{"f32", ProductClassChoice::f32, false},
                           {"exact", ProductClassChoice::automatic, true}};

inline void expect_logits(Engine& engine, const SafetensorsFile& golden, const std::string& prompt) {
  const auto rows = all_logits(engine, token_ids(golden, prompt + ".input_ids"));
  std::vector<float> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  EXPECT_LE(largest_difference(flat, golden.doubles(prompt + ".logits")), kLogits) << prompt;
}

// A traced value in the reference's order.
inline std::vector<float> in_order_of(const TracedTensor& t, const std::vector<int64_t>& stored_shape) {
  const bool heads_lead = t.name.find("_normed") != std::string::npos &&
                          stored_shape == std::vector{t.shape[1], t.shape[0], t.shape[2]};
  return heads_lead ? heads_first(t) : t.values;
}

inline std::vector<double> stored_values(const SafetensorsFile& golden, const std::string& name) {
  if (!name.ends_with("expert_ids")) return golden.doubles(name);
  const std::vector<int64_t> ids = golden.integers(name);
  return {ids.begin(), ids.end()};
}

inline int expect_intermediates(Engine& engine, const SafetensorsFile& golden, const std::string& prompt) {
  const std::string prefix = prompt + ".";
  std::vector<std::string> points, stored;
  for (const auto& tensor : golden.tensors()) {
    if (tensor.name.rfind(prefix, 0) != 0) continue;
    const std::string ours = our_name(tensor.name.substr(prefix.size()));
    if (ours.empty()) continue;
    points.push_back(ours);
    stored.push_back(tensor.name);
  }
  const auto traced = engine.trace(token_ids(golden, prefix + "input_ids"), points);
  for (size_t i = 0; i < points.size(); i++) {
    const auto it =
        std::find_if(traced.begin(), traced.end(), [&](const auto& t) { return t.name == points[i]; });
    if (it == traced.end()) {
      ADD_FAILURE() << points[i] << " was not traced";
      continue;
    }
    const double tolerance = points[i].find("pattern") != std::string::npos ? kPatterns : kActivations;
    EXPECT_LE(
        largest_difference(in_order_of(*it, golden.find(stored[i])->shape), stored_values(golden, stored[i])),
        tolerance)
        << stored[i];
  }
  return static_cast<int>(points.size());
}

inline void expect_everything(const std::string& path, const SafetensorsFile& golden, int at_least,
                              int threads = 2) {
  SCOPED_TRACE(path);
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(mode.name);
    Engine engine = load(path, mode.product_class, mode.exact, threads);
    int compared = 0;
    for (const std::string prompt : {"p0", "p1"}) {
      SCOPED_TRACE(prompt);
      expect_logits(engine, golden, prompt);
      compared += expect_intermediates(engine, golden, prompt);
      expect_greedy(engine, token_ids(golden, prompt + ".input_ids"), token_ids(golden, prompt + ".greedy"),
                    golden.doubles(prompt + ".greedy_gap"), 2 * kLogits);
    }
    EXPECT_GT(compared, at_least);
  }
}

}  // namespace liuli::golden
