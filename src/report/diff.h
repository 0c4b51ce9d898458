// Two models over one text, in step.
#pragma once
#include <span>

#include "generate/sequence.h"
#include "liuli/diff.h"

namespace liuli {

/// One side of a comparison.
struct ComparedRun {
  const Model& model;
  Runner& runner;
  RunClasses classes;
};

/// REQUIRES: ids within both vocabularies, which are of one size, and at least one; settings.context a
/// length both models can hold, not 0. Both runs may share a runner.
DiffReport compare_runs(ComparedRun run, ComparedRun reference, std::span<const int> ids,
                        const DiffSettings& settings);

}  // namespace liuli
