// Stands in for the tokenizer of a model that comes without one: such a model runs on ids.
#pragma once
#include "tokenizers/tokenizer.h"

namespace liuli {

/// Writes an id as ⟨17⟩ and reads no text. Errors (encoding): not_found with `reason`.
std::unique_ptr<Tokenizer> make_missing_tokenizer(std::string reason, int vocab_size);

}  // namespace liuli
