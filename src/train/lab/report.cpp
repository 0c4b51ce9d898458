#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "train/lab/experiments.h"

namespace liuli {

const char* to_string(Verdict verdict) {
  constexpr const char* kNames[] = {"holds", "partly", "contradicted", "untested"};
  return kNames[static_cast<size_t>(verdict)];
}

const BilingualText& verdict_text(Verdict verdict) {
  static const BilingualText kTexts[] = {{"成立", "holds"},
                                         {"部分成立", "holds in part"},
                                         {"与测量相矛盾", "contradicted"},
                                         {"未检验", "untested"}};
  return kTexts[static_cast<size_t>(verdict)];
}

const LabCheck* LabReport::check(std::string_view english_beginning) const {
  const auto it = std::find_if(checks.begin(), checks.end(), [&](const LabCheck& c) {
    return std::string_view(c.what.en).substr(0, english_beginning.size()) == english_beginning;
  });
  return it == checks.end() ? nullptr : &*it;
}

const std::vector<std::string>& lab_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const lab::Experiment& e : lab::experiments()) names.emplace_back(e.name);
    return names;
  }();
  return kNames;
}

namespace lab {
namespace {
constexpr Experiment kExperiments[] = {{"explosion", explosion},
                                       {"layernorm", layernorm},
                                       {"prenorm-postnorm", prenorm_postnorm},
                                       {"gamma-beta", gamma_beta},
                                       {"batchnorm-layernorm", batchnorm_layernorm},
                                       {"shape", shape},
                                       {"layers", layers},
                                       {"residual", residual}};
}

std::span<const Experiment> experiments() { return kExperiments; }

Verdict judge(const std::vector<LabCheck>& checks) {
  if (checks.empty()) return Verdict::untested;
  const auto fails = [](const LabCheck& c) { return !c.holds(); };
  if (std::none_of(checks.begin(), checks.end(), fails)) return Verdict::holds;
  const bool broken =
      std::any_of(checks.begin(), checks.end(), [&](const LabCheck& c) { return c.essential && fails(c); });
  return broken ? Verdict::contradicted : Verdict::partly;
}

std::string number(double x, int digits) {
  if (std::isnan(x)) return "–";
  if (std::isinf(x)) return x > 0 ? "∞" : "−∞";
  std::string text = fmt::format("{:.{}g}", x, digits);
  if (text[0] == '-') text.replace(0, 1, "−");
  return text;
}

LabCheck side_check(BilingualText what, double measured, bool at_least, double threshold) {
  return {std::move(what), measured, threshold, at_least, false};
}
LabCheck essential_check(BilingualText what, double measured, bool at_least, double threshold) {
  return {std::move(what), measured, threshold, at_least, true};
}

std::vector<double> counting(size_t n) {
  std::vector<double> x(n);
  std::iota(x.begin(), x.end(), 0.0);
  return x;
}

BilingualText left_out(const std::string& chinese, const std::string& english) {
  return {"没有给出真实模型,略去:" + chinese + "(用 --model 指定一个)。",
          "No real model was given; left out: " + english + " (name one with --model)."};
}

}  // namespace lab
}  // namespace liuli
