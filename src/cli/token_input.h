// Where a command's text and token ids come from: arguments, files, standard input.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "liuli/engine.h"

namespace liuli::cli {

/// A file's bytes. Errors: not_found, io_error.
std::string read_file(const std::string& path);
/// All of standard input; says so on stderr when nothing comes within a second.
std::string read_standard_input();
/// Whether standard input is a pipe, a socket or a file, so that it may hold a prompt.
bool standard_input_has_data();

/// "1,2,3", "1 2 3" or "[1, 2, 3]". Errors: invalid_argument, naming the piece that is no id.
std::vector<int> parse_ids(std::string_view text);
/// "0.5, -1e3" separated by commas or blanks. Errors: invalid_argument.
std::vector<double> parse_numbers(std::string_view text);

/// The tokens of --ids, --ids-file or --prompt, one of which must be given.
struct TokenInput {
  std::string ids, ids_file, prompt;
  bool has_ids = false, has_prompt = false;
  bool raw = false;  ///< the prompt as it is, without the chat template
};
void add_token_input(CLI::App& command, TokenInput& input, bool required = true);
/// Errors: invalid_argument (none given, empty, outside the vocabulary), and those of the files.
std::vector<int> read_tokens(const TokenInput& input, const Engine& engine);
/// --source and --source-ids of an encoder-decoder, --token-types of BERT.
struct BesideInput {
  std::string source, source_ids, token_types;
};
void add_source_input(CLI::App& command, BesideInput& input);
void add_token_types_input(CLI::App& command, BesideInput& input);
/// Errors: invalid_argument.
BesideTheTokens read_beside(const BesideInput& input, const Engine& engine);

/// A text as the model would see it: one user turn of the chat template; without one (a notice says why) or
/// raw, the text itself, raw also with control tokens recognised.
std::vector<int> prompt_tokens(const std::string& text, const std::string& system, bool raw,
                               const Engine& engine);

/// Reads standard input line by line as JSON objects and writes what `answer` makes of each, one line per
/// line, flushed at once so that a program can hold a dialogue. Errors: invalid_argument, naming the line.
void answer_json_lines(const std::function<nlohmann::ordered_json(const nlohmann::ordered_json&)>& answer);

}  // namespace liuli::cli
