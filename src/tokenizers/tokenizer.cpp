#include "tokenizers/tokenizer.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "liuli/error.h"
#include "tokenizers/pipeline.h"
#include "tokenizers/sentencepiece.h"
#include "tokenizers/unicode.h"
#include "tokenizers/unigram.h"

namespace liuli {
namespace {

[[noreturn]] void corrupt(const std::string& message) {
  throw Error(ErrorCode::corrupt_file, "tokenizer: " + message);
}

void check_id(const char* name, int id, size_t tokens) {
  if (id < -1 || (id >= 0 && static_cast<size_t>(id) >= tokens))
    corrupt(fmt::format("the {} token is {}, but there are {} tokens", name, id, tokens));
}

void check_types(const TokenizerData& data) {
  if (!data.types.empty() && data.types.size() != data.tokens.size())
    corrupt(fmt::format("{} token types for {} tokens", data.types.size(), data.tokens.size()));
  for (size_t id = 0; id < data.types.size(); ++id) {
    const auto type = static_cast<int>(data.types[id]);
    if (type < 1 || type > 6) corrupt(fmt::format("token {} has type {}, outside 1 … 6", id, type));
  }
}

void check_scores(const TokenizerData& data) {
  const bool needed = data.model == "llama" || data.model == "t5";
  if ((needed || !data.scores.empty()) && data.scores.size() != data.tokens.size())
    corrupt(fmt::format("{} scores for {} tokens", data.scores.size(), data.tokens.size()));
  for (size_t id = 0; id < data.scores.size(); ++id)
    if (!std::isfinite(data.scores[id]))
      corrupt(fmt::format("token {} has the score {}", id, data.scores[id]));
}

void check(const TokenizerData& data) {
  const size_t tokens = data.tokens.size();
  // Ids are doubled in the set of special tokens.
  if (tokens == 0 || tokens > std::numeric_limits<int>::max() / 2) corrupt(fmt::format("{} tokens", tokens));
  check_types(data);
  check_scores(data);
  check_id("bos", data.bos, tokens);
  check_id("eos", data.eos, tokens);
  check_id("unknown", data.unknown, tokens);
  check_id("padding", data.padding, tokens);
  if (data.add_bos && data.bos < 0) corrupt("a bos token is to be added, but none is named");
  if (data.add_eos && data.eos < 0) corrupt("an eos token is to be added, but none is named");
}

}  // namespace

Tokenizer::Tokenizer(TokenizerData data) : data_(std::move(data)) {
  if (data_.add_bos) before_.push_back(data_.bos);
  if (data_.add_eos) after_.push_back(data_.eos);
}

std::vector<int> Tokenizer::encode(std::string_view text, bool add_special, bool parse_special) const {
  std::vector<int> ids;
  if (add_special) ids = before_;
  const std::vector<int> body = encode_spans({{std::string(text), !parse_special}});
  ids.insert(ids.end(), body.begin(), body.end());
  if (add_special) ids.insert(ids.end(), after_.begin(), after_.end());
  return ids;
}

std::unique_ptr<Tokenizer> make_tokenizer(TokenizerData data) {
  if (data.model != "gpt2" && data.model != "llama" && data.model != "t5" && data.model != "bert")
    throw Error(ErrorCode::unsupported,
                fmt::format("tokenizer model \"{}\"; known are gpt2, llama, t5 and bert", data.model));
  check(data);
  if (data.model == "gpt2") return make_byte_bpe(std::move(data));
  if (data.model == "bert") return make_gguf_wordpiece(std::move(data));
  if (data.model == "llama") return std::make_unique<SentencePieceBpe>(std::move(data));
  return std::make_unique<Unigram>(std::move(data));
}

std::string StreamDecoder::push(int id) {
  pending_ += tokenizer_.token_bytes(id);
  const size_t whole = pending_.size() - incomplete_utf8_tail(pending_);
  std::string text = replace_invalid_utf8(std::string_view(pending_).substr(0, whole));
  pending_.erase(0, whole);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text = replace_invalid_utf8(pending_);
  pending_.clear();
  return text;
}

}  // namespace liuli
