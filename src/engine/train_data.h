// Text files to documents, documents to a tokenizer and to tokens.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "liuli/train.h"
#include "tokenizers/tokenizer.h"
#include "train/bpe_trainer.h"
#include "train/dataset.h"

namespace liuli {

/// Calls f with each document of some text files. Errors: not_found, io_error, corrupt_file (a line of .jsonl without
/// "text"), invalid_argument (another kind of file).
void for_each_document(const std::vector<std::string>& files, const std::string& separator,
                       const std::function<void(const std::string&)>& f);

/// A tokenizer of the documents, as its two files.
struct TokenizerFiles {
  std::string tokenizer, config;
  TokenizerReport report;
};
TokenizerFiles make_tokenizer_files(const std::vector<std::string>& files, const std::string& separator,
                                    const TokenizerSettings& settings, int64_t context);

/// All of a run's tokens; end: the token after each document (−1: none). Errors: as for_each_document; and
/// invalid_argument (fewer tokens than one window, a token outside the vocabulary).
Dataset read_dataset(const TrainSettings& settings, const Tokenizer* tokenizer, int end, int64_t vocab_size);

}  // namespace liuli
