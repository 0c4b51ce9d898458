#include "engine/tokenizer_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "liuli/error.h"

namespace liuli {
namespace {

std::string key_of(std::string_view name) { return fmt::format("tokenizer.ggml.{}", name); }

// What a kind of tokenizer implies where the file is silent. −1: no such token.
struct Defaults {
  int bos = -1, eos = -1, unknown = -1, padding = -1;
  bool add_bos = false, add_eos = false, add_space_prefix = false;
};

Defaults defaults_of(const std::string& model, const std::string& pre) {
  if (model == "llama") return {1, 2, 0, -1, true, false, true};
  if (model == "t5") return {-1, 1, 2, 0, false, true, true};
  // Of the byte-level vocabularies only Llama 3's family starts with BOS unless told otherwise.
  constexpr std::array<std::string_view, 4> kStartWithBos = {"llama-bpe", "llama3", "llama-v3", "falcon3"};
  Defaults defaults;
  defaults.add_bos = std::find(kStartWithBos.begin(), kStartWithBos.end(), pre) != kStartWithBos.end();
  return defaults;
}

int token_id(const Metadata& metadata, std::string_view name, int implied, size_t tokens) {
  const std::string key = key_of(name);
  const std::optional<int64_t> id = metadata.integer(key);
  if (!id) return implied < 0 || static_cast<size_t>(implied) >= tokens ? -1 : implied;
  // Some converters write −1, or its unsigned twin, for "none".
  if (*id == -1 || *id == int64_t{UINT32_MAX}) return -1;
  if (*id < 0 || *id >= static_cast<int64_t>(tokens))
    throw Error(ErrorCode::corrupt_file,
                fmt::format("{} is {}, but the vocabulary has {} tokens", key, *id, tokens));
  return static_cast<int>(*id);
}

// A flag that the file does not state needs a token it can add.
bool adds(const Metadata& metadata, std::string_view name, bool implied, int id) {
  return metadata.boolean(key_of(name)).value_or(implied && id >= 0);
}

std::vector<TokenType> token_types(const Metadata& metadata) {
  const std::string key = key_of("token_type");
  std::vector<TokenType> types;
  for (const int64_t type : metadata.integers(key).value_or(std::vector<int64_t>())) {
    if (type < 1 || type > 6)
      throw Error(ErrorCode::corrupt_file,
                  fmt::format("{}: token {} has type {}, outside 1 … 6", key, types.size(), type));
    types.push_back(static_cast<TokenType>(type));
  }
  return types;
}

std::vector<uint8_t> charsmap(const Metadata& metadata) {
  const std::string key = key_of("precompiled_charsmap");
  std::vector<uint8_t> bytes;
  for (const int64_t byte : metadata.integers(key).value_or(std::vector<int64_t>())) {
    if (byte < -128 || byte > 255)  // stored as i8 by some, as u8 by others
      throw Error(ErrorCode::corrupt_file,
                  fmt::format("{}: element {} is {}, no byte", key, bytes.size(), byte));
    bytes.push_back(static_cast<uint8_t>(byte & 0xFF));
  }
  return bytes;
}

std::vector<std::string> required_texts(const Metadata& metadata, std::string_view name) {
  std::optional<std::vector<std::string>> texts = metadata.texts(key_of(name));
  if (!texts)
    throw Error(ErrorCode::corrupt_file,
                fmt::format("{} is missing, but {} is there", key_of(name), key_of("model")));
  return std::move(*texts);
}

}  // namespace

TokenizerData tokenizer_data(const Metadata& metadata) {
  TokenizerData data;
  const std::optional<std::string> model = metadata.text(key_of("model"));
  if (!model || *model == "none" || *model == "no_vocab")
    throw Error(ErrorCode::not_found, fmt::format("the file has no tokenizer: {} is {}", key_of("model"),
                                                  model.value_or("missing")));
  data.model = *model;
  data.pre = metadata.text(key_of("pre")).value_or("default");
  data.tokens = required_texts(metadata, "tokens");
  if (data.model == "gpt2") data.merges = required_texts(metadata, "merges");
  data.scores = metadata.numbers(key_of("scores")).value_or(std::vector<float>());
  data.types = token_types(metadata);
  data.precompiled_charsmap = charsmap(metadata);

  const Defaults implied = defaults_of(data.model, data.pre);
  data.bos = token_id(metadata, "bos_token_id", implied.bos, data.tokens.size());
  data.eos = token_id(metadata, "eos_token_id", implied.eos, data.tokens.size());
  data.unknown = token_id(metadata, "unknown_token_id", implied.unknown, data.tokens.size());
  data.padding = token_id(metadata, "padding_token_id", implied.padding, data.tokens.size());
  data.add_bos = adds(metadata, "add_bos_token", implied.add_bos, data.bos);
  data.add_eos = adds(metadata, "add_eos_token", implied.add_eos, data.eos);
  data.add_space_prefix = metadata.boolean(key_of("add_space_prefix")).value_or(implied.add_space_prefix);
  data.remove_extra_whitespaces = metadata.boolean(key_of("remove_extra_whitespaces")).value_or(false);
  return data;
}

}  // namespace liuli
