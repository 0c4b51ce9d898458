#include "engine/train_data.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "liuli/error.h"
#include "tokenizers/hugging_face.h"

namespace liuli {
namespace {

using Document = std::function<void(const std::string&)>;

std::ifstream open_text(const std::string& path) {
  if (!std::filesystem::exists(path))
    throw Error(ErrorCode::not_found, fmt::format("{}: there is no such file", path));
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path))
    throw Error(ErrorCode::io_error, fmt::format("{}: cannot read it: {}", path, std::strerror(errno)));
  return file;
}

void read_json_lines(const std::string& path, const Document& f) {
  std::ifstream file = open_text(path);
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    number++;
    if (line.find_first_not_of(" \r\t") == std::string::npos) continue;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    const auto text = json.is_object() ? json.find("text") : json.end();
    if (!json.is_object() || text == json.end() || !text->is_string())
      throw Error(ErrorCode::corrupt_file,
                  fmt::format("{}: line {} is no JSON object with a string \"text\"", path, number));
    f(text->get_ref<const std::string&>());
  }
}

void read_text(const std::string& path, const std::string& separator, const Document& f) {
  std::ifstream file = open_text(path);
  std::ostringstream all;
  all << file.rdbuf();
  const std::string text = all.str();
  if (separator.empty()) return f(text);
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) f(text.substr(at, end - at));
    at = end + separator.size();
  }
}

void check_tokens(const TokenStream& stream, const char* what, int64_t vocab_size) {
  for (int64_t i = 0; i < stream.size(); i++)
    if (stream.at(i) < 0 || stream.at(i) >= vocab_size)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("token {} of the {} is {}, outside the model's vocabulary of {}", i, what,
                              stream.at(i), vocab_size));
}

bool is_tokens(const std::vector<std::string>& files) {
  bool any = false, all = true;
  for (const std::string& file : files) {
    any |= TokenStream::is_token_file(file);
    all &= TokenStream::is_token_file(file);
  }
  if (any && (!all || files.size() > 1))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: a file of tokens stands alone, not among {} files", files.front(), files.size()));
  return any;
}

Dataset read_files(const TrainSettings& s, const std::vector<std::string>& files, double held_out,
                   const Tokenizer* tokenizer, int end) {
  if (is_tokens(files)) return split_stream(TokenStream::open(files.front()), held_out);
  if (tokenizer == nullptr)
    throw Error(ErrorCode::invalid_argument, "text needs a tokenizer, and the model's folder has none");
  DatasetBuilder builder(held_out, s.seed);
  for_each_document(files, s.separator, [&](const std::string& document) {
    std::vector<int> ids = tokenizer->encode(document, false, false);
    if (end >= 0) ids.push_back(end);
    builder.add(ids);
  });
  return std::move(builder).build();
}

TokenizerTraining training_of(const TokenizerSettings& s) {
  return {s.vocab_size, s.min_count, s.kind, s.special, s.on_progress};
}

}  // namespace

void for_each_document(const std::vector<std::string>& files, const std::string& separator,
                       const Document& f) {
  for (const std::string& path : files) {
    if (path.ends_with(".jsonl"))
      read_json_lines(path, f);
    else if (TokenStream::is_token_file(path))
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: holds tokens, text is needed here", path));
    else
      read_text(path, separator, f);
  }
}

TokenizerFiles make_tokenizer_files(const std::vector<std::string>& files, const std::string& separator,
                                    const TokenizerSettings& settings, int64_t context) {
  const TokenizerTraining training = training_of(settings);
  TokenizerFiles made;
  tokenizer_json({}, training);  // refuses an unknown kind before the work
  WordCounts counts(settings.kind);
  for_each_document(files, separator, [&](const std::string& text) {
    counts.add(text);
    made.report.text_bytes += static_cast<int64_t>(text.size());
  });
  if (counts.words().empty())
    throw Error(ErrorCode::invalid_argument, "there is no text to make a tokenizer from");
  const TrainedVocabulary vocabulary =
      settings.kind == "characters" ? train_characters(counts, training) : train_bpe(counts, training);
  made.report.vocab_size = static_cast<int64_t>(vocabulary.tokens.size());
  made.report.merges = static_cast<int64_t>(vocabulary.merges.size());
  made.tokenizer = tokenizer_json(vocabulary, training);
  made.config = tokenizer_config_json(training, context);
  const auto made_file = [&](std::string_view name) -> std::optional<std::string> {
    if (name == "tokenizer.json") return made.tokenizer;
    if (name == "tokenizer_config.json") return made.config;
    return std::nullopt;
  };
  const auto tokenizer = read_hugging_face_text(made_file, "").tokenizer;
  for (const auto& [word, count] : counts.words())
    made.report.text_tokens += count * static_cast<int64_t>(tokenizer->encode(word, false, false).size());
  return made;
}

Dataset read_dataset(const TrainSettings& s, const Tokenizer* tokenizer, int end, int64_t vocab_size) {
  if (s.data.empty()) throw Error(ErrorCode::invalid_argument, "data names no file to learn from");
  Dataset dataset = read_files(s, s.data, s.held_out_data.empty() ? s.held_out : 0, tokenizer, end);
  if (!s.held_out_data.empty()) dataset.held_out = read_files(s, s.held_out_data, 0, tokenizer, end).train;
  if (dataset.train.size() <= s.sequence_length)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has {} tokens to learn from, one window takes {}", s.data.front(),
                            dataset.train.size(), s.sequence_length + 1));
  check_tokens(dataset.train, "training data", vocab_size);
  check_tokens(dataset.held_out, "held-out data", vocab_size);
  return dataset;
}

}  // namespace liuli
