// Experiments that test what is said about transformer blocks: each states a claim, measures, and lets the numbers of
// that run decide.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "liuli/explain.h"

namespace liuli {

/// The same words in both languages, or one text for both (numbers, names).
struct BilingualText {
  std::string zh, en;

  BilingualText() = default;
  BilingualText(std::string both) : zh(both), en(std::move(both)) {}
  BilingualText(const char* both) : zh(both), en(both) {}
  BilingualText(std::string chinese, std::string english) : zh(std::move(chinese)), en(std::move(english)) {}
  const std::string& in(Language language) const { return language == Language::zh ? zh : en; }
};

enum class Verdict : uint8_t {
  holds,         ///< every check does
  partly,        ///< some checks do, the essential ones among them
  contradicted,  ///< an essential check fails
  untested       ///< what it needs (a real model) was not there
};
const char* to_string(Verdict verdict);
const BilingualText& verdict_text(Verdict verdict);

/// One measured number against the threshold that decides.
struct LabCheck {
  BilingualText what;
  double measured = 0, threshold = 0;
  bool at_least = true;   ///< measured ≥ threshold, otherwise ≤
  bool essential = true;  ///< if it fails, the claim is contradicted
  bool holds() const { return at_least ? measured >= threshold : measured <= threshold; }  // NaN never does
};

struct LabTable {
  BilingualText title;
  std::vector<BilingualText> columns;
  std::vector<std::vector<BilingualText>> rows;
};

struct LabSeries {
  BilingualText label;
  std::vector<double> x, y;  ///< points that are not finite (or ≤ 0 on a log axis) are left out
};

struct LabPlot {
  BilingualText title, x_label, y_label;
  bool log_x = false, log_y = false;
  std::vector<LabSeries> series;
};

struct LabSettings {
  uint64_t seed = 1;
  bool quick = false;  ///< fewer depths, seeds and steps: for tests
  std::string
      model;  ///< a file for the parts that look at a real model; "": they are left out, and the report says so
  int threads = 0;  ///< changes no number
  /// Tests only: runs the experiment on the opposite of what its claim speaks of, so that its verdict must turn round.
  bool mutate = false;
  std::function<void(const std::string& what, double done)> on_progress;  ///< done 0 … 1; may throw to stop
};

struct LabReport {
  std::string name;  ///< "explosion"
  BilingualText title, question, claim;
  Verdict verdict = Verdict::untested;
  BilingualText because;  ///< with the numbers
  std::vector<LabCheck> checks;
  std::vector<LabTable> tables;
  std::vector<LabPlot> plots;
  std::vector<BilingualText> notes;  ///< what else was seen, what was left out and why
  double seconds = 0;
  uint64_t seed = 1;
  bool quick = false, mutated = false;
  int threads = 1;
  std::string model;  ///< the file that was looked at, without its folder; "" if none

  const LabCheck* check(std::string_view english_beginning) const;
};

/// explosion, layernorm, prenorm-postnorm, gamma-beta, batchnorm-layernorm, shape, layers, residual.
const std::vector<std::string>& lab_names();

/// Runs experiments in the order given. A number follows from seed, quick and the model alone. Errors: invalid_argument
/// (no such experiment; names those there are), and those of Engine::load for the model.
std::vector<LabReport> run_lab(const std::vector<std::string>& names, const LabSettings& settings = {});

/// For a terminal, ending with a newline: claim, verdict, checks, tables, plots.
std::string render_lab_text(const LabReport& report, Language language, const TextStyle& style = {});
/// One page that stands by itself (no network, no other file): both languages to switch between, light and dark; the
/// pictures are SVG.
std::string render_lab_html(const std::vector<LabReport>& reports, Language first_shown);
void to_json(nlohmann::ordered_json& json, const LabReport& report);

}  // namespace liuli
