#include "tokenizers/pipeline.h"

#include <algorithm>

#include <fmt/format.h>

#include "liuli/error.h"
#include "tokenizers/bpe.h"
#include "tokenizers/sentencepiece.h"
#include "tokenizers/unicode.h"
#include "tokenizers/wordpiece.h"

namespace liuli {

PipelineTokenizer::PipelineTokenizer(TokenizerData data, Pipeline parts)
    : TypedTokenizer(std::move(data)), parts_(std::move(parts)) {
  before_ = parts_.before;
  after_ = parts_.after;
  for (AddedToken& added : parts_.added) {
    added.rule.control = is_control(added.rule.id);
    if (!added.normalized) {
      raw_.add(added.text, added.rule);
      continue;
    }
    MarkedText text{added.text, ""};
    for (const NormalizerPtr& step : parts_.normalizers) step->apply(text);
    normalized_.add(text.text, added.rule);
  }
}

std::vector<int> PipelineTokenizer::encode_spans(const std::vector<TextSpan>& spans) const {
  const MarkedText marked = join_spans(spans);
  std::vector<int> ids;
  for (const Fragment& fragment : raw_.split(marked)) {
    if (fragment.id >= 0) {
      ids.push_back(fragment.id);
      continue;
    }
    const size_t bytes = fragment.end - fragment.begin;
    MarkedText stretch{marked.text.substr(fragment.begin, bytes), ""};
    if (normalized_.has_control()) stretch.from_user = marked.from_user.substr(fragment.begin, bytes);
    for (const NormalizerPtr& step : parts_.normalizers) step->apply(stretch);
    encode_normalized(stretch, fragment.begin == 0, ids);
  }
  return ids;
}

void PipelineTokenizer::encode_normalized(const MarkedText& text, bool at_start,
                                          std::vector<int>& ids) const {
  const auto encode = [&](std::string stretch, bool starts) {
    Pieces pieces(std::move(stretch), starts);
    for (const PreTokenizerStepPtr& step : parts_.pre_tokenizer) step->apply(pieces);
    parts_.model->encode(pieces.views(), ids);
  };
  if (normalized_.empty()) return encode(text.text, at_start);
  for (const Fragment& fragment : normalized_.split(text)) {
    if (fragment.id >= 0)
      ids.push_back(fragment.id);
    else
      encode(text.text.substr(fragment.begin, fragment.end - fragment.begin),
             at_start && fragment.begin == 0);
  }
}

DecodedToken PipelineTokenizer::token(int id) const {
  if (!known(id) || has_type(id, TokenType::unused)) return {};
  const auto at = static_cast<size_t>(id);
  const TokenType t = type(at);
  const bool literal = t == TokenType::control || t == TokenType::user_defined || t == TokenType::unknown;
  return {data_.tokens[at], literal};
}

std::string PipelineTokenizer::token_bytes(int id) const {
  DecodedToken one = token(id);
  if (one.text.empty() || is_control(id)) return one.text;
  for (const DecoderPtr& step : parts_.decoders) step->apply_alone(one);
  return std::move(one.text);
}

std::string PipelineTokenizer::decode(const std::vector<int>& ids) const {
  std::vector<DecodedToken> tokens;
  for (const int id : ids) tokens.push_back(token(id));
  for (const DecoderPtr& step : parts_.decoders) step->apply(tokens);
  std::string text;
  for (const DecodedToken& token : tokens) text += token.text;
  return replace_invalid_utf8(text);
}

namespace {

void add_special_tokens(const TokenizerData& data, Pipeline& parts) {
  for (size_t id = 0; id < data.types.size(); ++id)
    if (data.types[id] == TokenType::control || data.types[id] == TokenType::user_defined)
      parts.added.push_back({data.tokens[id], {static_cast<int>(id)}, false});
  if (data.add_bos) parts.before = {data.bos};
  if (data.add_eos) parts.after = {data.eos};
}

MergeList merge_list(const std::vector<std::string>& lines) {
  MergeList merges;
  for (const std::string& line : lines) {
    const size_t space = line.find(' ');
    if (space == std::string::npos)
      throw Error(ErrorCode::corrupt_file,
                  fmt::format("merge {} \"{}\" is not \"left right\"", merges.size(), line));
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

}  // namespace

std::unique_ptr<Tokenizer> make_byte_bpe(TokenizerData data) {
  const PreTokenizer& rules = pre_tokenizer(data.pre);
  Pipeline parts;
  if (rules.nfc) parts.normalizers.push_back(unicode_normalizer(NormalForm::nfc));
  for (const Scanner scan : rules.passes)
    parts.pre_tokenizer.push_back(split_step(scanner_pattern(scan), SplitBehavior::isolated));
  BpeSettings settings;
  settings.byte_level = true;
  settings.ignore_merges = rules.ignore_merges;
  parts.model = std::make_unique<Bpe>(data, merge_list(data.merges), settings);
  parts.decoders.push_back(byte_level_decoder());
  add_special_tokens(data, parts);
  return std::make_unique<PipelineTokenizer>(std::move(data), std::move(parts));
}

std::unique_ptr<Tokenizer> make_gguf_wordpiece(TokenizerData data) {
  constexpr size_t kLongestWord = 100;  // characters, as Hugging Face has it
  const std::string prefix = "##";
  // The file does not say whether it is cased; an uncased vocabulary has no word with a capital.
  bool cased = false;
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    if (!data.types.empty() && data.types[id] != TokenType::normal) continue;
    std::string& token = data.tokens[id];
    cased = cased || std::any_of(token.begin(), token.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    token = token.starts_with(kSpaceMark) ? token.substr(kSpaceMark.size()) : prefix + token;
  }
  if (data.unknown < 0)
    throw Error(ErrorCode::corrupt_file, "tokenizer: a WordPiece vocabulary without an unknown token");
  Pipeline parts;
  parts.normalizers.push_back(bert_normalizer({true, true, !cased, !cased}));
  const auto space = [](char32_t c) { return (char_class(c) & kSpace) != 0; };
  const auto sign = [](char32_t c) { return is_ascii_punctuation(c) || (char_class(c) & kPunctuation); };
  parts.pre_tokenizer.push_back(split_step(character_pattern(space, false), SplitBehavior::removed));
  parts.pre_tokenizer.push_back(split_step(character_pattern(sign, false), SplitBehavior::isolated));
  parts.model = std::make_unique<WordPiece>(data, prefix, kLongestWord);
  parts.decoders.push_back(wordpiece_decoder(prefix, true));
  add_special_tokens(data, parts);
  return std::make_unique<PipelineTokenizer>(std::move(data), std::move(parts));
}

}  // namespace liuli
