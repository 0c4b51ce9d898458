#include "cli/glass_options.h"

#include <charconv>
#include <map>

#include <fmt/format.h>

#include "cli/program.h"
#include "cli/text_table.h"
#include "liuli/model_file.h"

namespace liuli::cli {

void add_glass_options(CLI::App& command, GlassOptions& options, Program& program) {
  command.group("See inside");
  add_model_argument(command, options.model.model)->required();
  add_load_options(command, options.model);
  add_token_input(command, options.tokens);
  add_json_flag(command, program);
}

void add_array_output(CLI::App& command, std::string& output, const char* what) {
  command.add_option("-o,--output", output, what)->type_name("FILE");
}

int one_token(const Engine& engine, const std::string& text) {
  if (text.rfind("id:", 0) == 0) {
    int id = 0;
    const auto [end, error] = std::from_chars(text.data() + 3, text.data() + text.size(), id);
    if (error == std::errc() && end == text.data() + text.size() && id >= 0 &&
        id < engine.config().vocab_size)
      return id;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is not id:0 … id:{}", text, engine.config().vocab_size - 1));
  }
  const std::vector<int> ids = engine.tokenize(text, false, true);
  if (ids.size() == 1) return ids.front();
  std::string pieces;
  for (const int id : ids) pieces += fmt::format(" \"{}\"", token_label(engine, id));
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("\"{}\" is {} tokens:{}; one is asked for (a space at its beginning counts; id:1234 names "
                  "one by its number)",
                  text, ids.size(), pieces));
}

std::string token_label(const Engine& engine, int id, int max_width) {
  return visible(engine.token_text(id), max_width);
}

std::string position_label(const Engine& engine, const std::vector<int>& ids, int position) {
  return fmt::format("{} {}", position, token_label(engine, ids[static_cast<size_t>(position)]));
}

void write_arrays(const std::string& path, const std::vector<NamedArray>& arrays,
                  const std::map<std::string, std::string>& metadata) {
  if (path.ends_with(".npy")) {
    write_npy(path, arrays.front().shape, arrays.front().values);
    return;
  }
  std::vector<TensorFileWriter::Entry> entries;
  for (const NamedArray& array : arrays) entries.push_back({array.name, array.shape});
  TensorFileWriter writer(path, entries, metadata);
  for (const NamedArray& array : arrays) writer.append(array.values.data(), array.values.size());
  writer.finish();
}

}  // namespace liuli::cli
