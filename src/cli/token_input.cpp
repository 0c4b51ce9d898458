#include "cli/token_input.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/text_table.h"

namespace liuli::cli {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::string read_all(std::FILE* file, const std::string& name) {
  std::string text;
  char buffer[1 << 16];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;) text.append(buffer, n);
  if (std::ferror(file)) throw Error(ErrorCode::io_error, fmt::format("{}: {}", name, std::strerror(errno)));
  return text;
}

constexpr std::string_view kSeparators = ", \t\r\n";

// Calls take(piece) for every piece between separators.
template <typename Take>
void split(std::string_view text, const Take& take) {
  while (true) {
    const size_t begin = text.find_first_not_of(kSeparators);
    if (begin == std::string_view::npos) return;
    const size_t end = std::min(text.find_first_of(kSeparators, begin), text.size());
    take(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
}

std::string_view without_brackets(std::string_view text) {
  const size_t first = text.find_first_not_of(kSeparators);
  const size_t last = text.find_last_not_of(kSeparators);
  if (first == std::string_view::npos || text[first] != '[' || text[last] != ']' || first == last)
    return text;
  return text.substr(first + 1, last - first - 1);
}

template <typename Number>
Number parse_number(std::string_view piece, const char* what) {
  Number value{};
  const std::string_view digits = piece.starts_with('+') ? piece.substr(1) : piece;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not {}", visible(piece, 40), what));
  }
  return value;
}

void check_ids(const std::vector<int>& ids, const Engine& engine) {
  if (ids.empty()) throw Error(ErrorCode::invalid_argument, "no token ids: the list is empty");
  const int64_t limit = engine.config().vocab_size;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < limit) continue;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("token id {} at position {} is outside the vocabulary 0 … {}", ids[i], i, limit - 1));
  }
}

}  // namespace

std::string read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (!file) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io_error;
    throw Error(code, fmt::format("{}: {}", path, std::strerror(errno)));
  }
  return read_all(file.get(), path);
}

std::string read_standard_input() {
  pollfd waiting = {STDIN_FILENO, POLLIN, 0};
  // A pipe that someone forgot to close looks like a program that hangs; one line tells what it waits for.
  if (poll(&waiting, 1, 1000) == 0) fmt::print(stderr, "liuli: reading the prompt from standard input…\n");
  return read_all(stdin, "standard input");
}

bool standard_input_has_data() {
  struct stat status = {};
  if (fstat(STDIN_FILENO, &status) != 0) return false;
  return S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode);
}

std::vector<int> parse_ids(std::string_view text) {
  std::vector<int> ids;
  split(without_brackets(text),
        [&ids](std::string_view piece) { ids.push_back(parse_number<int>(piece, "a token id")); });
  return ids;
}

std::vector<double> parse_numbers(std::string_view text) {
  std::vector<double> numbers;
  split(without_brackets(text),
        [&numbers](std::string_view piece) { numbers.push_back(parse_number<double>(piece, "a number")); });
  return numbers;
}

void add_token_input(CLI::App& command, TokenInput& input, bool required) {
  auto* group = command.add_option_group("tokens", "the tokens to run: one of these");
  group
      ->add_option_function<std::string>(
          "--ids", [&input](const std::string& text) { input.ids = text, input.has_ids = true; },
          "token ids: 1,2,3")
      ->type_name("IDS");
  group->add_option("--ids-file", input.ids_file, "file of token ids: blanks between them, or a JSON array")
      ->type_name("FILE");
  group
      ->add_option_function<std::string>(
          "--prompt", [&input](const std::string& text) { input.prompt = text, input.has_prompt = true; },
          "text; one user turn of the model's chat template, if it has one")
      ->type_name("TEXT");
  group->require_option(required ? 1 : 0, 1);
  command.add_flag("--raw", input.raw, "with --prompt: the text as it is, without the chat template");
}

std::vector<int> read_tokens(const TokenInput& input, const Engine& engine) {
  std::vector<int> ids;
  if (input.has_prompt) {
    ids = prompt_tokens(input.prompt, "", input.raw, engine);
  } else {
    ids = parse_ids(input.has_ids ? input.ids : read_file(input.ids_file));
  }
  check_ids(ids, engine);
  return ids;
}

void add_source_input(CLI::App& command, BesideInput& input) {
  auto* text =
      command.add_option("--source", input.source, "an encoder-decoder's source text")->type_name("TEXT");
  command.add_option("--source-ids", input.source_ids, "the source as token ids: 1,2,3")
      ->type_name("IDS")
      ->excludes(text);
}

void add_token_types_input(CLI::App& command, BesideInput& input) {
  command
      .add_option("--token-types", input.token_types,
                  "the segment of each token, for BERT: 0,0,1 (default: all 0)")
      ->type_name("TYPES");
}

BesideTheTokens read_beside(const BesideInput& input, const Engine& engine) {
  BesideTheTokens beside;
  beside.source = input.source.empty() ? parse_ids(input.source_ids) : engine.tokenize(input.source);
  beside.token_types = parse_ids(input.token_types);
  return beside;
}

std::vector<int> prompt_tokens(const std::string& text, const std::string& system, bool raw,
                               const Engine& engine) {
  if (raw) return engine.tokenize(text, true, true);
  auto messages = nlohmann::ordered_json::array();
  if (!system.empty()) messages.push_back({{"role", "system"}, {"content", system}});
  messages.push_back({{"role", "user"}, {"content", text}});
  if (engine.has_chat_template()) return engine.render_chat(messages, nullptr).ids;
  try {
    engine.render_chat(messages, nullptr);  // says why there is none
  } catch (const Error& e) {
    fmt::print(stderr, "liuli: notice: {}; until then the prompt is continued as plain text\n", e.what());
  }
  return engine.tokenize(text, true, false);
}

void answer_json_lines(const std::function<nlohmann::ordered_json(const nlohmann::ordered_json&)>& answer) {
  std::string line;
  for (int number = 1; std::getline(std::cin, line); ++number) {
    throw_if_interrupted();
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      const auto question = nlohmann::ordered_json::parse(line);
      if (!question.is_object()) throw Error(ErrorCode::invalid_argument, "not a JSON object");
      fmt::print("{}\n", json_text(answer(question), -1));
    } catch (const nlohmann::json::exception& e) {
      throw Error(ErrorCode::invalid_argument, fmt::format("line {}: {}", number, e.what()));
    } catch (const Error& e) {
      throw Error(e.code(), fmt::format("line {}: {}", number, e.what()));
    }
    std::fflush(stdout);
  }
}

}  // namespace liuli::cli
