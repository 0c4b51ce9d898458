// The text side of a Hugging Face folder: which of its files makes the tokenizer, and what the others add.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizers/tokenizer.h"

namespace liuli {

/// The contents of a file of the folder, or nothing.
using CompanionFiles = std::function<std::optional<std::string>(std::string_view file_name)>;

struct HuggingFaceText {
  std::unique_ptr<Tokenizer> tokenizer;
  std::string chat_template;  ///< "": none
};

/// Reads tokenizer.json; without it vocab.txt, vocab.json and merges.txt, or tokenizer.model (SentencePiece, or
/// Llama 3's text file). tokenizer_config.json, special_tokens_map.json and added_tokens.json name special tokens and
/// say whether BOS and EOS are added; chat_template.jinja wins over the configuration's. model_type is config.json's
/// ("gpt2", "bert", …), for folders that do not name their kind of tokenizer.
/// Errors: not_found (none of the files), corrupt_file, unsupported (naming what would change ids).
HuggingFaceText read_hugging_face_text(const CompanionFiles& files, const std::string& model_type);

/// Whether there is any of the files a tokenizer is made of.
bool has_tokenizer_files(const CompanionFiles& files);

}  // namespace liuli
