#include "tokenizers/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>

#include "liuli/error.h"
#include "tokenizers/sentencepiece_file.h"
#include "tokenizers/tokenizer_config.h"

namespace liuli {
namespace {

using nlohmann::json;

constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

json split_then_bytes(std::string_view pattern) {
  const json split = {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}};
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}};
}

[[noreturn]] void unknown_class(const TokenizerConfig& config, const char* file) {
  throw Error(ErrorCode::unsupported,
              fmt::format("{} without tokenizer.json: the tokenizer class \"{}\" is not known", file,
                          config.tokenizer_class));
}

bool is_one_of(const std::string& name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The lines of a text; a line feed at its end begins no further line.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

std::string or_default(const std::string& stated, const char* otherwise) {
  return stated.empty() ? otherwise : stated;
}

int64_t place_of(const TokenizerFile& file, const json& token) {
  for (const auto& [known, id] : file.vocabulary)
    if (token == known) return id;
  return -1;
}

// Words that stand alone and are looked up as they are.
void add_never_split(const JsonPart& settings, const TokenizerFile& file, std::vector<AddedEntry>& added) {
  if (!settings.has("never_split")) return;
  for (const json& word : settings.json()["never_split"]) {
    AddedEntry entry;
    entry.id = place_of(file, word);
    if (entry.id < 0) settings.unsupported(fmt::format("never_split {}, which is no token", word.dump()));
    entry.token.text = word.get<std::string>();
    entry.token.rule.alone = true;
    added.push_back(std::move(entry));
  }
}

json bert_parts(const JsonPart& settings, const SpecialNames& names, const json& cls, const json& sep) {
  const bool lowercase = settings.flag("do_lower_case", true);
  const json normalizer = {{"type", "BertNormalizer"},
                           {"lowercase", lowercase},
                           {"strip_accents", settings.flag("strip_accents", lowercase)},
                           {"handle_chinese_chars", settings.flag("tokenize_chinese_chars", true)}};
  return {{"model", {{"type", "WordPiece"}, {"unk_token", names.unknown}}},
          {"normalizer", normalizer},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor", {{"type", "BertProcessing"}, {"cls", cls}, {"sep", sep}}},
          {"decoder", {{"type", "WordPiece"}}}};
}

// vocab.txt: the token of a line has the line's number, from 0.
TokenizerFile from_vocab_txt(const std::string& text, TokenizerConfig& config) {
  if (!is_one_of(config.tokenizer_class, {"", "BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"}))
    unknown_class(config, "vocab.txt");
  TokenizerFile file;
  for (std::string& line : lines_of(text))
    file.vocabulary.emplace_back(std::move(line), static_cast<int64_t>(file.vocabulary.size()));
  SpecialNames& names = config.names;
  names.unknown = or_default(names.unknown, "[UNK]");
  names.padding = or_default(names.padding, "[PAD]");
  names.others = {or_default(names.others[0], "[CLS]"), or_default(names.others[1], "[SEP]"),
                  or_default(names.others[2], "[MASK]")};
  const auto with_id = [&](const std::string& token) {
    const int64_t id = place_of(file, token);
    if (id < 0) throw Error(ErrorCode::corrupt_file, fmt::format("vocab.txt has no \"{}\"", token));
    return json::array({token, id});
  };
  const JsonPart settings(config.json, "tokenizer_config.json");
  file.rest = bert_parts(settings, names, with_id(names.others[0]), with_id(names.others[1]));
  add_never_split(settings, file, config.added);
  return file;
}

// "left right" per line, in rank order; the first line may be "#version: …".
MergeList merges_of(const std::string& text) {
  MergeList merges;
  bool first = true;
  for (const std::string& line : lines_of(text)) {
    const bool comment = first && line.starts_with("#version");
    first = false;
    if (comment || line.empty()) continue;
    const size_t space = line.find(' ');
    if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
      throw Error(ErrorCode::corrupt_file,
                  fmt::format("merges.txt: merge {} \"{}\" is not \"left right\"", merges.size(), line));
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

TokenizerFile from_vocab_json(const std::string& vocabulary, const std::string& merges,
                              TokenizerConfig& config, const std::string& model_type) {
  // The vocabulary is a bare object; inside a model it is what the reader knows.
  TokenizerFile file = parse_tokenizer_file("{\"model\":{\"vocab\":" + vocabulary + "}}");
  file.merges = merges_of(merges);
  file.rest["model"]["type"] = "BPE";
  file.rest["decoder"] = {{"type", "ByteLevel"}};
  const JsonPart settings(config.json, "tokenizer_config.json");
  const bool unnamed = config.tokenizer_class.empty();
  if (config.tokenizer_class == "GPT2Tokenizer" || (unnamed && model_type == "gpt2")) {
    config.names.bos = or_default(config.names.bos, "<|endoftext|>");
    config.names.eos = or_default(config.names.eos, "<|endoftext|>");
    file.rest["pre_tokenizer"] = {{"type", "ByteLevel"},
                                  {"add_prefix_space", settings.flag("add_prefix_space", false)}};
  } else if (config.tokenizer_class == "Qwen2Tokenizer" ||
             (unnamed && is_one_of(model_type, {"qwen2", "qwen3"}))) {
    file.rest["normalizer"] = {{"type", "NFC"}};
    file.rest["pre_tokenizer"] = split_then_bytes(kQwen2Pattern);
  } else {
    unknown_class(config, "vocab.json");
  }
  return file;
}

// Meta's list behind the 128000 ranks: the first ten, then reserved ones.
std::vector<std::string> llama3_special_tokens() {
  std::vector<std::string> names = {"<|begin_of_text|>", "<|end_of_text|>"};
  const auto reserve = [&](int from, int to) {
    for (int i = from; i < to; ++i) names.push_back(fmt::format("<|reserved_special_token_{}|>", i));
  };
  reserve(0, 4);
  names.insert(names.end(), {"<|start_header_id|>", "<|end_header_id|>"});
  reserve(4, 5);
  names.push_back("<|eot_id|>");
  reserve(5, 251);
  return names;
}

TokenizerFile from_tiktoken(const std::string& bytes, TokenizerConfig& config) {
  constexpr size_t kLlama3Ranks = 128000;
  std::vector<std::string> tokens = read_tiktoken_file(bytes);
  if (config.added.empty() && tokens.size() != kLlama3Ranks)
    throw Error(ErrorCode::unsupported,
                fmt::format("tokenizer.model is a text file of {} ranks; Llama 3's has {}, and without a "
                            "configuration no other is known",
                            tokens.size(), kLlama3Ranks));
  TokenizerFile file;
  const size_t ranks = tokens.size();
  for (std::string& token : tokens)
    file.vocabulary.emplace_back(std::move(token), static_cast<int64_t>(file.vocabulary.size()));
  file.rest = {{"model", {{"type", "BPE"}, {"ignore_merges", true}}},
               {"pre_tokenizer", split_then_bytes(kLlama3Pattern)},
               {"decoder", {{"type", "ByteLevel"}}}};
  file.ranks_are_ids = true;
  if (config.added.empty()) {
    for (const std::string& name : llama3_special_tokens()) {
      AddedEntry entry;
      entry.id = static_cast<int64_t>(ranks + config.added.size());
      entry.token.text = name;
      entry.special = true;
      config.added.push_back(entry);
    }
    config.names.bos = or_default(config.names.bos, "<|begin_of_text|>");
    config.names.eos = or_default(config.names.eos, "<|end_of_text|>");
    if (!config.names.add_bos) config.names.add_bos = true;
  }
  return file;
}

// Tokens that the configuration adds behind the pieces, and what it says about BOS and EOS.
void apply_config(const TokenizerConfig& config, TokenizerData& data) {
  const size_t pieces = data.tokens.size();
  for (const AddedEntry& entry : config.added) {
    if (entry.id < 0 || entry.id > static_cast<int64_t>(2 * pieces + 4096))
      throw Error(ErrorCode::corrupt_file,
                  fmt::format("added token \"{}\" has the id {}, the model has {} pieces", entry.token.text,
                              entry.id, pieces));
    const auto id = static_cast<size_t>(entry.id);
    if (id < data.tokens.size() && data.tokens[id] == entry.token.text) continue;
    if (id < pieces)
      throw Error(ErrorCode::corrupt_file, fmt::format("added token \"{}\" has the id {} of the piece \"{}\"",
                                                       entry.token.text, id, data.tokens[id]));
    if (data.tokens.size() <= id) {
      data.tokens.resize(id + 1);
      data.scores.resize(id + 1, 0.0f);
      data.types.resize(id + 1, TokenType::unused);
    }
    data.tokens[id] = entry.token.text;
    data.types[id] = entry.special ? TokenType::control : TokenType::user_defined;
  }
  const auto find = [&](const std::string& name, int otherwise) {
    const auto found = std::find(data.tokens.begin(), data.tokens.end(), name);
    return name.empty() || found == data.tokens.end() ? otherwise
                                                      : static_cast<int>(found - data.tokens.begin());
  };
  data.bos = find(config.names.bos, data.bos);
  data.eos = find(config.names.eos, data.eos);
  data.padding = find(config.names.padding, data.padding);
}

std::unique_ptr<Tokenizer> from_sentencepiece(const std::string& bytes, const TokenizerConfig& config) {
  TokenizerData data = read_sentencepiece_file(bytes);
  apply_config(config, data);
  const std::string& name = config.tokenizer_class;
  bool bos = false, eos = false;
  if (is_one_of(name, {"LlamaTokenizer", "GemmaTokenizer", "CodeLlamaTokenizer"}))
    bos = true;
  else if (name == "T5Tokenizer")
    eos = true;
  else if (!name.empty())
    unknown_class(config, "tokenizer.model");
  else
    bos = data.model == "llama";
  data.add_bos = config.names.add_bos.value_or(bos) && data.bos >= 0;
  data.add_eos = config.names.add_eos.value_or(eos) && data.eos >= 0;
  return make_tokenizer(std::move(data));
}

}  // namespace

bool has_tokenizer_files(const CompanionFiles& files) {
  for (const char* name : {"tokenizer.json", "vocab.txt", "tokenizer.model", "vocab.json"})
    if (files(name)) return true;
  return false;
}

std::optional<TokenizerFile> read_tokenizer_parts(const CompanionFiles& files, TokenizerConfig& config,
                                                  const std::string& model_type) {
  if (const auto text = files("tokenizer.json")) return parse_tokenizer_file(*text);
  if (const auto text = files("vocab.txt")) return from_vocab_txt(*text, config);
  if (const auto text = files("tokenizer.model")) {
    if (looks_like_tiktoken(*text)) return from_tiktoken(*text, config);
    return std::nullopt;
  }
  if (const auto vocabulary = files("vocab.json")) {
    const auto merges = files("merges.txt");
    if (!merges) throw Error(ErrorCode::not_found, "vocab.json is there, but merges.txt is not");
    return from_vocab_json(*vocabulary, *merges, config, model_type);
  }
  throw Error(ErrorCode::not_found,
              "the folder has no tokenizer: none of tokenizer.json, vocab.txt, tokenizer.model, vocab.json");
}

HuggingFaceText read_hugging_face_text(const CompanionFiles& files, const std::string& model_type) {
  TokenizerConfig config = read_tokenizer_config(files);
  HuggingFaceText text;
  if (auto file = read_tokenizer_parts(files, config, model_type))
    text.tokenizer = build_tokenizer(std::move(*file), config.names, config.added);
  else
    text.tokenizer = from_sentencepiece(*files("tokenizer.model"), config);
  text.chat_template = std::move(config.chat_template);
  return text;
}

}  // namespace liuli
