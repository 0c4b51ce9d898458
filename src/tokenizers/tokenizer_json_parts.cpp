// Normalisers, pre-tokenizers, decoders and post-processors of a tokenizer.json.
#include <fmt/format.h>

#include "liuli/error.h"
#include "tokenizers/base64.h"
#include "tokenizers/tokenizer_json.h"
#include "tokenizers/unicode.h"

namespace liuli {
namespace {

using nlohmann::json;

constexpr char kSpaceMarkText[] = "▁";

// {"String": …} or {"Regex": …}; as a pattern.
struct Pattern {
  std::string text;
  bool is_regex;
};
Pattern read_pattern(const JsonPart& part) {
  if (!part.has("pattern")) part.corrupt("has no \"pattern\"");
  const json& pattern = part.json()["pattern"];
  if (pattern.is_string()) return {pattern.get<std::string>(), false};
  const JsonPart inner = part.part("pattern");
  const bool is_regex = inner.has("Regex");
  return {inner.text(is_regex ? "Regex" : "String"), is_regex};
}

Regex compiled(const Pattern& pattern) {
  return Regex(pattern.is_regex ? pattern.text : escaped_pattern(pattern.text));
}

Charsmap read_charsmap(const JsonPart& part) {
  const auto bytes = from_base64(part.text("precompiled_charsmap", ""));
  if (!bytes) part.corrupt("\"precompiled_charsmap\" is no base64");
  return Charsmap(*bytes);
}

NormalizerPtr read_replace(const JsonPart& part) {
  const Pattern pattern = read_pattern(part);
  if (!pattern.is_regex && !pattern.text.empty())
    return replace_text_normalizer(pattern.text, part.text("content"));
  return replace_normalizer(compiled(pattern), part.text("content"));
}

NormalizerPtr read_bert(const JsonPart& part) {
  BertRules rules;
  rules.clean_text = part.flag("clean_text", true);
  rules.chinese_characters = part.flag("handle_chinese_chars", true);
  rules.lowercase = part.flag("lowercase", true);
  rules.strip_accents = part.flag("strip_accents", rules.lowercase);
  return bert_normalizer(rules);
}

NormalizerPtr one_normalizer(const JsonPart& part, const std::string& type) {
  if (type == "NFC") return unicode_normalizer(NormalForm::nfc);
  if (type == "NFD") return unicode_normalizer(NormalForm::nfd);
  if (type == "NFKC") return unicode_normalizer(NormalForm::nfkc);
  if (type == "NFKD") return unicode_normalizer(NormalForm::nfkd);
  if (type == "Lowercase") return lowercase_normalizer();
  if (type == "StripAccents") return strip_accents_normalizer();
  if (type == "Strip") return strip_normalizer(part.flag("strip_left", true), part.flag("strip_right", true));
  if (type == "Replace") return read_replace(part);
  if (type == "Prepend") return prepend_normalizer(part.text("prepend"));
  if (type == "Nmt") return nmt_normalizer();
  if (type == "ByteLevel") return byte_level_normalizer();
  if (type == "BertNormalizer") return read_bert(part);
  if (type == "Precompiled") return charsmap_normalizer(read_charsmap(part));
  part.unsupported(fmt::format("normalizer \"{}\"", type));
}

SplitBehavior read_behavior(const JsonPart& part, const std::string& otherwise) {
  const std::string name = part.text("behavior", otherwise);
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  part.unsupported(fmt::format("behavior \"{}\"", name));
}

PreTokenizerStepPtr read_split(const JsonPart& part) {
  const Pattern pattern = read_pattern(part);
  const Scanner scanner = pattern.is_regex ? scanner_of_pattern(pattern.text) : nullptr;
  return split_step(scanner != nullptr ? scanner_pattern(scanner) : regex_pattern(compiled(pattern)),
                    read_behavior(part, ""), part.flag("invert", false));
}

PrependScheme read_scheme(const JsonPart& part) {
  const std::string name = part.text("prepend_scheme", "");
  if (name == "always") return PrependScheme::always;
  if (name == "first") return PrependScheme::first;
  if (name == "never") return PrependScheme::never;
  if (!name.empty()) part.unsupported(fmt::format("prepend_scheme \"{}\"", name));
  return part.flag("add_prefix_space", true) ? PrependScheme::always : PrependScheme::never;
}

bool is_space(char32_t c) { return (char_class(c) & kSpace) != 0; }
bool is_number(char32_t c) { return (char_class(c) & kNumber) != 0; }
bool is_punctuation(char32_t c) { return is_ascii_punctuation(c) || (char_class(c) & kPunctuation) != 0; }

PreTokenizerStepPtr split_at(bool (*inside)(char32_t), SplitBehavior behavior) {
  return split_step(character_pattern(inside, false), behavior);
}

void read_metaspace(const JsonPart& part, std::vector<PreTokenizerStepPtr>& out) {
  const std::string mark = part.text("replacement", kSpaceMarkText);
  out.push_back(space_mark_step(mark, read_scheme(part)));
  if (!part.flag("split", true)) return;
  out.push_back(split_step(regex_pattern(Regex(escaped_pattern(mark))), SplitBehavior::merged_with_next));
}

PreTokenizerStepPtr read_delimiter(const JsonPart& part) {
  return split_step(regex_pattern(Regex(escaped_pattern(part.text("delimiter")))), SplitBehavior::removed);
}

PreTokenizerStepPtr read_fixed_length(const JsonPart& part) {
  const int64_t length = part.integer("length", 5);
  if (length < 1 || length > INT32_MAX) part.corrupt(fmt::format("\"length\" is {}", length));
  return split_step(length_pattern(static_cast<uint32_t>(length)), SplitBehavior::isolated);
}

void one_pre_tokenizer(const JsonPart& part, const std::string& type, std::vector<PreTokenizerStepPtr>& out) {
  if (type == "Split") return out.push_back(read_split(part));
  if (type == "Digits")
    return out.push_back(split_at(is_number, part.flag("individual_digits", false)
                                                 ? SplitBehavior::isolated
                                                 : SplitBehavior::contiguous));
  if (type == "Whitespace")
    return out.push_back(split_step(words_and_signs_pattern(), SplitBehavior::removed, true));
  if (type == "WhitespaceSplit") return out.push_back(split_at(is_space, SplitBehavior::removed));
  if (type == "Punctuation") return out.push_back(split_at(is_punctuation, read_behavior(part, "Isolated")));
  if (type == "BertPreTokenizer") {
    out.push_back(split_at(is_space, SplitBehavior::removed));
    return out.push_back(split_at(is_punctuation, SplitBehavior::isolated));
  }
  if (type == "Metaspace") return read_metaspace(part, out);
  if (type == "CharDelimiterSplit") return out.push_back(read_delimiter(part));
  if (type == "FixedLength") return out.push_back(read_fixed_length(part));
  part.unsupported(fmt::format("pre_tokenizer \"{}\"", type));
}

DecoderPtr one_decoder(const JsonPart& part, const std::string& type) {
  if (type == "ByteLevel") return byte_level_decoder();
  if (type == "WordPiece") return wordpiece_decoder(part.text("prefix", "##"), part.flag("cleanup", true));
  if (type == "Metaspace")
    return space_mark_decoder(part.text("replacement", kSpaceMarkText), read_scheme(part));
  if (type == "ByteFallback") return byte_fallback_decoder();
  if (type == "Fuse") return fuse_decoder();
  if (type == "BPEDecoder") return suffix_decoder(part.text("suffix", "</w>"));
  if (type == "Strip") {
    const int64_t start = part.integer("start", 0), stop = part.integer("stop", 0);
    const std::string content = part.text("content");
    if (start < 0 || stop < 0 || content.empty())
      part.corrupt("strips nothing, or a negative number of times");
    return strip_decoder(content, static_cast<size_t>(start), static_cast<size_t>(stop));
  }
  if (type == "Replace") {
    const Pattern pattern = read_pattern(part);
    if (!pattern.is_regex && !pattern.text.empty())
      return replace_text_decoder(pattern.text, part.text("content"));
    return replace_decoder(compiled(pattern), part.text("content"));
  }
  part.unsupported(fmt::format("decoder \"{}\"", type));
}

int checked_id(const JsonPart& part, const json& id) {
  if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX)
    part.corrupt(fmt::format("has the id {}", id.dump()));
  return id.get<int>();
}

// The ids of an item of a template.
std::vector<int> template_ids(const JsonPart& processor, const JsonPart& item) {
  const JsonPart entry = processor.part("special_tokens").part(item.part("SpecialToken").text("id").c_str());
  const auto listed = entry.json().find("ids");
  std::vector<int> ids;
  if (listed == entry.json().end() || !listed->is_array()) entry.corrupt("has no list \"ids\"");
  for (const json& id : *listed) ids.push_back(checked_id(entry, id));
  return ids;
}

void read_template(const JsonPart& part, std::vector<int>& before, std::vector<int>& after) {
  std::vector<int> left, right;
  int sequences = 0;
  for (const JsonPart& item : part.parts("single")) {
    if (item.has("Sequence")) {
      ++sequences;
      continue;
    }
    const std::vector<int> ids = template_ids(part, item);
    std::vector<int>& side = sequences == 0 ? left : right;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (sequences != 1) part.unsupported(fmt::format("a template that has the text {} times", sequences));
  before.insert(before.begin(), left.begin(), left.end());
  after.insert(after.end(), right.begin(), right.end());
}

// ["[SEP]", 102]
int pair_id(const JsonPart& part, const char* name) {
  const auto pair = part.json().find(name);
  if (pair == part.json().end() || !pair->is_array() || pair->size() != 2)
    part.corrupt(fmt::format("\"{}\" is not [token, id]", name));
  return checked_id(part, (*pair)[1]);
}

}  // namespace

void read_normalizer(const JsonPart& part, std::vector<NormalizerPtr>& out) {
  const std::string type = part.text("type");
  if (type != "Sequence") return out.push_back(one_normalizer(part, type));
  for (const JsonPart& inner : part.parts("normalizers")) read_normalizer(inner, out);
}

void read_pre_tokenizer(const JsonPart& part, bool& byte_model, std::vector<PreTokenizerStepPtr>& out) {
  const std::string type = part.text("type");
  if (type == "Sequence") {
    for (const JsonPart& inner : part.parts("pretokenizers")) read_pre_tokenizer(inner, byte_model, out);
    return;
  }
  if (byte_model) out.push_back(byte_spelling_step());  // it was not the last after all
  byte_model = type == "ByteLevel";
  if (!byte_model) return one_pre_tokenizer(part, type, out);
  if (part.flag("add_prefix_space", true)) out.push_back(prefix_space_step());
  if (part.flag("use_regex", true))
    out.push_back(split_step(scanner_pattern(pre_tokenizer("gpt-2").passes[0]), SplitBehavior::isolated));
}

void read_decoder(const JsonPart& part, std::vector<DecoderPtr>& out) {
  const std::string type = part.text("type");
  if (type != "Sequence") return out.push_back(one_decoder(part, type));
  for (const JsonPart& inner : part.parts("decoders")) read_decoder(inner, out);
}

void read_post_processor(const JsonPart& part, std::vector<int>& before, std::vector<int>& after) {
  const std::string type = part.text("type");
  if (type == "ByteLevel") return;  // offsets only
  if (type == "Sequence") {
    for (const JsonPart& inner : part.parts("processors")) read_post_processor(inner, before, after);
  } else if (type == "TemplateProcessing") {
    read_template(part, before, after);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    before.insert(before.begin(), pair_id(part, "cls"));
    after.push_back(pair_id(part, "sep"));
  } else {
    part.unsupported(fmt::format("post_processor \"{}\"", type));
  }
}

}  // namespace liuli
