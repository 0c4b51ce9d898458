// The operands of a worked calculation, taken from a real model's run.
#pragma once
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/model_options.h"
#include "cli/token_input.h"
#include "liuli/explain.h"

namespace liuli::cli {

/// Which row of which run.
struct RunPlace {
  ModelOptions model;  ///< model.model empty: the user gives the numbers
  TokenInput tokens;
  int layer = 0;
  int head = 0;
  int token = -1;  ///< position; negative: counted from the end
  std::string site;
};

/// --model, --prompt/--ids, --layer, --token (and the load options); site and head are added by their users.
void add_run_place(CLI::App& command, RunPlace& place);

/// The row that enters a norm (site ln1, ln2, ln_final), its γ, β and ε, and what the run gave for it.
NormInputs norm_inputs(const RunPlace& place);
/// The query of one token and head and all keys of its kv head.
ScoreInputs score_inputs(const RunPlace& place);
/// One token's addition of a branch (site attn or mlp) to the residual stream.
ResidualInputs residual_inputs(const RunPlace& place);

}  // namespace liuli::cli
