// A folder's tokenizer as the keys of a GGUF file.
#pragma once
#include <string>
#include <vector>

#include "formats/gguf_writer.h"
#include "formats/weight_source.h"

namespace liuli {

/// Every key tokenizer.…; padding up to the rows of the embedding. A folder without a tokenizer gets add_no_tokenizer()
/// and a warning.
/// Errors: unsupported for a tokenizer that GGUF cannot express: it would give other ids.
void add_tokenizer_keys(const WeightSource& folder, int64_t vocab_size, GgufKeys& keys,
                        std::vector<std::string>& warnings);
void add_no_tokenizer(GgufKeys& keys);

}  // namespace liuli
