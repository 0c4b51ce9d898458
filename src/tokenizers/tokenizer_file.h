// The text of a tokenizer.json, taken apart: vocabulary and merges as lists, everything else as JSON.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tokenizers/bpe.h"

namespace liuli {

struct TokenizerFile {
  nlohmann::json rest;                                      ///< without model.vocab and model.merges
  std::vector<std::pair<std::string, int64_t>> vocabulary;  ///< BPE, WordPiece, WordLevel: token, id
  std::vector<std::pair<std::string, double>> scored;       ///< Unigram: token, score; the place is the id
  MergeList merges;
  bool ranks_are_ids = false;  ///< in place of merges: tiktoken's vocabularies
};

/// Vocabulary and merges go straight into their lists: a document of half a million small values would take three
/// times as long. Errors: corrupt_file (no JSON, or the two lists hold something else).
TokenizerFile parse_tokenizer_file(std::string_view text);

/// A part of the file that knows its place, for reading typed fields. Errors of all: corrupt_file, naming the place
/// and the types that disagree.
class JsonPart {
 public:
  JsonPart(const nlohmann::json& json, std::string place);

  const std::string& place() const { return place_; }
  bool has(const char* name) const { return find(name) != nullptr; }  ///< there, and not null
  bool flag(const char* name, bool otherwise) const;
  int64_t integer(const char* name, int64_t otherwise) const;
  double number(const char* name, double otherwise) const;
  std::string text(const char* name, const std::string& otherwise) const;
  std::string text(const char* name) const;             ///< must be there
  JsonPart part(const char* name) const;                ///< must be there, an object
  std::vector<JsonPart> parts(const char* name) const;  ///< of a list of objects
  const nlohmann::json& json() const { return json_; }

  [[noreturn]] void corrupt(const std::string& what) const;
  [[noreturn]] void unsupported(const std::string& what) const;

 private:
  const nlohmann::json* find(const char* name) const;
  const nlohmann::json& json_;
  std::string place_;
};

}  // namespace liuli
