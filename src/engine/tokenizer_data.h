// From a file's metadata to what a tokenizer is built of.
#pragma once
#include "formats/weight_source.h"
#include "tokenizers/tokenizer.h"

namespace liuli {

/// Reads the keys tokenizer.ggml.*; what a file leaves out gets the value its kind of model implies (old
/// files name neither the ids nor the flags). Errors: not_found (no tokenizer in the file), corrupt_file (a
/// key of the wrong type, a missing array, an id outside the vocabulary); whether the parts fit together is
/// make_tokenizer's business.
TokenizerData tokenizer_data(const Metadata& metadata);

}  // namespace liuli
