// Which kernel each weight uses, and why.
#pragma once
#include "generate/sequence.h"
#include "liuli/report.h"

namespace liuli {

ModelPlan make_plan(const Model& model, RunClasses classes, const Runner& runner, int64_t context);

}  // namespace liuli
