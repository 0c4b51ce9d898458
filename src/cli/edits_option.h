// --edit and --edits: changes to a run.
#pragma once
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "liuli/edit.h"
#include "liuli/engine.h"

namespace liuli::cli {

struct EditOptions {
  std::vector<std::string> edits;  ///< short forms
  std::string file;                ///< JSON
};
void add_edit_options(CLI::App& command, EditOptions& options);
/// Of the file first, then the short forms. Errors: as parse_edit and parse_edits_json.
std::vector<Edit> read_edits(const EditOptions& options, const Engine& engine);
/// The same for a text that is run in windows: tokens count within each. Errors: also for an edit that depends on one
/// window's own run.
std::vector<Edit> read_windowed_edits(const EditOptions& options, const Engine& engine);

}  // namespace liuli::cli
