// A folder's tokenizer in the terms that GGUF has for tokenizers.
#pragma once
#include <string>
#include <vector>

#include "tokenizers/hugging_face.h"

namespace liuli {

struct TokenizerInGguf {
  TokenizerData
      data;  ///< model "gpt2", "llama", "t5" or "bert"; what make_tokenizer builds from it gives the folder's ids
  std::string chat_template;          ///< "": none
  std::vector<std::string> warnings;  ///< what cannot be said and rarely matters, a line each
};

/// GGUF names whole kinds of tokenizers where tokenizer.json lists parts. The kind is recognised by what the parts do: a
/// pre-tokenizer by how it cuts a sample text, everything together by the ids of further samples and of every special
/// token between letters, which both tokenizers must give.
/// model_type: config.json's.
/// Errors: those of read_hugging_face_text; unsupported for a tokenizer without an equal in GGUF, showing where the
/// nearest one differs.
TokenizerInGguf tokenizer_in_gguf(const CompanionFiles& files, const std::string& model_type);

}  // namespace liuli
