// tokenizer_config.json and its older companions.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tokenizers/hugging_face.h"
#include "tokenizers/tokenizer_json.h"

namespace liuli {

struct TokenizerConfig {
  nlohmann::json json;          ///< tokenizer_config.json, or an empty object
  std::string tokenizer_class;  ///< without "Fast"; "" when not stated
  SpecialNames names;
  std::vector<AddedEntry> added;  ///< added_tokens_decoder, added_tokens.json
  std::string chat_template;
};

/// Errors: corrupt_file.
TokenizerConfig read_tokenizer_config(const CompanionFiles& files);

/// What the folder's tokenizer is put together from, in the terms of a tokenizer.json, whichever files say it; names and
/// added tokens that a kind of file implies are set in `config`. Nothing for a SentencePiece model.
/// Errors: those of read_hugging_face_text.
std::optional<TokenizerFile> read_tokenizer_parts(const CompanionFiles& files, TokenizerConfig& config,
                                                  const std::string& model_type);

/// A file that holds a JSON object. Errors: corrupt_file.
nlohmann::json parse_companion(std::string_view text, const std::string& name);

}  // namespace liuli
