#include "cli/edits_option.h"

#include "cli/token_input.h"

namespace liuli::cli {

void add_edit_options(CLI::App& command, EditOptions& options) {
  command
      .add_option(
          "--edit", options.edits,
          "change a value on its way: 'blocks.3.resid_post[5,:] *= 0', 'blocks.6.resid_pre += @v.npy', "
          "'blocks.3.attn.z = patch:\"other prompt\"'; repeatable")
      ->allow_extra_args(false)
      ->type_name("EDIT");
  command.add_option("--edits", options.file, "edits as a JSON file (docs/edits.md)")->type_name("FILE");
}

std::vector<Edit> read_edits(const EditOptions& options, const Engine& engine) {
  std::vector<Edit> edits;
  if (!options.file.empty()) edits = parse_edits_json(engine, read_file(options.file), options.file);
  for (const std::string& text : options.edits) edits.push_back(parse_edit(engine, text));
  return edits;
}

}  // namespace liuli::cli
