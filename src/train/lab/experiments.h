// The experiments, one function and one file each.
#pragma once
#include <string>

#include "liuli/lab.h"
#include "model/transformer.h"
#include "train/lab/real_model.h"

namespace liuli::lab {

/// What an experiment works with. It fills question, claim, checks, tables, plots, notes and because; the verdict follows
/// from the checks.
struct Bench {
  const LabSettings& settings;
  Runner& runner;              ///< of one thread
  int threads = 1;             ///< how many runs may go side by side
  RealModel* model = nullptr;  ///< null: no real model

  bool quick() const { return settings.quick; }
  bool mutated() const { return settings.mutate; }
  void progress(const std::string& what, double done) const {
    if (settings.on_progress) settings.on_progress(what, done);
  }
};

void explosion(Bench& bench, LabReport& report);
void layernorm(Bench& bench, LabReport& report);
void prenorm_postnorm(Bench& bench, LabReport& report);
void gamma_beta(Bench& bench, LabReport& report);
void batchnorm_layernorm(Bench& bench, LabReport& report);
void shape(Bench& bench, LabReport& report);
void layers(Bench& bench, LabReport& report);
void residual(Bench& bench, LabReport& report);

/// Names in the order of lab_names().
struct Experiment {
  const char* name;
  void (*run)(Bench& bench, LabReport& report);
};
std::span<const Experiment> experiments();
/// holds, partly or contradicted, from the checks alone; untested without any.
Verdict judge(const std::vector<LabCheck>& checks);

// ---- writing reports ----
/// "0.1643", "3.4e+38", "∞", "–" for NaN.
std::string number(double x, int digits = 4);
/// A check whose failing leaves the claim partly true.
LabCheck side_check(BilingualText what, double measured, bool at_least, double threshold);
LabCheck essential_check(BilingualText what, double measured, bool at_least, double threshold);
/// 0, 1, 2, … n − 1.
std::vector<double> counting(size_t n);
/// The note that a part needs a model.
BilingualText left_out(const std::string& chinese, const std::string& english);

}  // namespace liuli::lab
