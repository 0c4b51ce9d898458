// A tokenizer out of a tokenizer.json, exactly as Hugging Face's library runs it.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tokenizers/pipeline.h"
#include "tokenizers/tokenizer_file.h"

namespace liuli {

/// What the files beside it add; names are token strings, "" where there is none.
struct SpecialNames {
  std::string bos, eos, unknown, padding;
  std::vector<std::string> others;       ///< further control tokens: separator, mask, …
  std::optional<bool> add_bos, add_eos;  ///< stated: they replace the post-processor
};

/// An entry of tokenizer.json's added_tokens, or of tokenizer_config.json's added_tokens_decoder.
struct AddedEntry {
  int64_t id = -1;
  AddedToken token;
  bool special = false;
};
AddedEntry read_added_token(const JsonPart& part, int64_t id);

/// "BPE", "WordPiece", "WordLevel" or "Unigram", also of old files, which do not say it.
std::string tokenizer_model_type(const TokenizerFile& file);

/// Errors: unsupported (a part that would change ids, by name), corrupt_file.
std::unique_ptr<Tokenizer> build_tokenizer(TokenizerFile file, const SpecialNames& names,
                                           const std::vector<AddedEntry>& more = {});

/// The parts, each read from its place in the file. What they push may be nothing (an empty sequence).
void read_normalizer(const JsonPart& part, std::vector<NormalizerPtr>& out);
/// byte_model: a ByteLevel step at the very end is left to the model, which then encodes raw bytes; set to whether
/// there was one.
void read_pre_tokenizer(const JsonPart& part, bool& byte_model, std::vector<PreTokenizerStepPtr>& out);
void read_decoder(const JsonPart& part, std::vector<DecoderPtr>& out);
void read_post_processor(const JsonPart& part, std::vector<int>& before, std::vector<int>& after);

}  // namespace liuli
