// tokenizer.model: SentencePiece's protocol buffer, and the text file of the same name that Llama 3 has.
#pragma once
#include <string_view>

#include "tokenizers/tokenizer.h"

namespace liuli {

/// Reads a ModelProto:
///
///   1 pieces: {1 piece, 2 score (f32), 3 type}        2 trainer_spec: {3 model_type, 40…43 unk, bos, eos, pad id}
///   3 normalizer_spec: {2 precompiled_charsmap, 3 add_dummy_prefix, 4 remove_extra_whitespaces,
///                       5 escape_whitespaces}
///
/// The result is of the model "llama" (BPE) or "t5" (Unigram); BOS and EOS are named, not added.
/// Errors: corrupt_file, unsupported (word and character models, spaces that are not escaped).
TokenizerData read_sentencepiece_file(std::string_view bytes);

/// Lines of "base64 rank": the text file of tiktoken's vocabularies.
bool looks_like_tiktoken(std::string_view bytes);
/// Their tokens in the byte alphabet; the place is the rank. Errors: corrupt_file.
std::vector<std::string> read_tiktoken_file(std::string_view bytes);

}  // namespace liuli
