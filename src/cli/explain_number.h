// `liuli explain MODEL --at …`, beside the worked calculations.
#pragma once
#include "cli/program.h"

namespace liuli::cli {

/// MODEL, --at and what goes with them, on the command that has the calculations as subcommands.
void add_number_explanation(CLI::App& command, Program& program);

}  // namespace liuli::cli
