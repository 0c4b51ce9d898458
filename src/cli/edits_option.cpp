#include "cli/edits_option.h"

#include <fmt/format.h>

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

std::vector<Edit> read_windowed_edits(const EditOptions& options, const Engine& engine) {
  std::vector<Edit> edits = read_edits(options, engine);
  for (const Edit& edit : edits) {
    const bool reads_run = edit.action >= EditAction::mean && edit.action <= EditAction::freeze;
    bool from_end = false;
    for (const auto& ranges : edit.index)
      for (const IndexRange& range : ranges) from_end |= range.begin < 0 || range.end < 0;
    if ((reads_run && edit.from.empty()) || from_end || edit.at == "embed.weight")
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{}: a text runs in windows; an edit of them names its reference text, counts from the "
                      "beginning, and leaves the embedding alone",
                      edit.at));
  }
  return edits;
}

}  // namespace liuli::cli
