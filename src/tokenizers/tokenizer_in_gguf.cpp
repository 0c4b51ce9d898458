#include "tokenizers/tokenizer_in_gguf.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include <fmt/format.h>

#include "liuli/error.h"
#include "tokenizers/base64.h"
#include "tokenizers/tokenizer_config.h"
#include "tokenizers/tokenizer_json.h"

namespace liuli {
namespace {

// One text in which every known rule cuts somewhere no other does: contractions in both cases, runs of digits, white
// space and signs before words, Han beside Latin, marks that are not composed, line ends of both kinds.
constexpr const char* kCuts =
    "it's IT'S we'll WE'LL 3333 12345½ foo_bar(x);\n\n  y a  1 x\r\n\r\ny\tz \u00A0n don’t e\u0301 c++17 \n "
    "\n z $#^~|+<=> "
    "!word ...end 漢字とカナabc我a ไทยคำ हिन्दी Übergrößenträger 🙂🙂 x "
    " ";

constexpr const char* kSamples[] = {
    kCuts,
    "Hello world",
    " Hello,  world!",
    "The quick brown fox jumps over the lazy dog.\nDon't you think?  1234567 times — “indeed”.",
    "   three spaces, then\ttabs\t\tand\n\n\nlines\n",
    "def f(x):\n    return x ** 2  # naïve façade\n",
    "你好，世界！こんにちは 안녕하세요 Привет мир שלום مرحبا",
    "e\u0301 ﬁ ℌ ① Å ½ ²",
    "👩‍👩‍👧 🇩🇪 👍🏽 \u200B\u00AD\uFEFF x",
    "[brackets] <angle> {curly} `tick` a/b\\c @me #tag 50% a&b",
    " ",
    "\n",
};

constexpr const char* kPreTokenizers[] = {"gpt-2", "smollm",      "llama-bpe", "dbrx",
                                          "qwen2", "deepseek-v3", "default"};

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::unsupported, fmt::format("the tokenizer has no equal in GGUF: {}", why));
}

/// What comes before the model.
struct Cutting {
  std::vector<NormalizerPtr> normalizers;
  std::vector<PreTokenizerStepPtr> steps;
  bool byte_model = false;

  explicit Cutting(const TokenizerFile& file) {
    const JsonPart root(file.rest, "tokenizer.json");
    if (root.has("normalizer")) read_normalizer(root.part("normalizer"), normalizers);
    if (root.has("pre_tokenizer")) read_pre_tokenizer(root.part("pre_tokenizer"), byte_model, steps);
  }
  std::vector<std::string> pieces_of(const std::string& sample) const {
    MarkedText text{sample, ""};
    for (const NormalizerPtr& step : normalizers) step->apply(text);
    Pieces pieces(text.text, true);
    for (const PreTokenizerStepPtr& step : steps) step->apply(pieces);
    const std::vector<std::string_view> views = pieces.views();
    return {views.begin(), views.end()};
  }
};

std::string quoted(const std::string& text) {
  constexpr size_t kShown = 40;
  std::string shown = text.substr(0, kShown);
  for (size_t at = 0; (at = shown.find('\n', at)) != std::string::npos; at += 2) shown.replace(at, 1, "\\n");
  return fmt::format("\"{}{}\"", shown, text.size() > kShown ? "…" : "");
}

/// Runs of spaces are spelled with ▁ in some files (Gemma): what people type has spaces. A literal ▁ is the one text that
/// GGUF's readers cannot tell from a space.
std::string as_typed(std::string token) {
  constexpr std::string_view kMark = "▁";
  // DeepSeek's names have it between letters; there it is no space.
  if (token.find_first_not_of(kMark) != std::string::npos) return token;
  std::string spaces;
  for (size_t at = 0; at < token.size(); at += kMark.size()) spaces += ' ';
  return spaces;
}

/// Where two tokenizers part, or "".
class Judge {
 public:
  explicit Judge(const Tokenizer& folder) : folder_(folder) {
    for (const char* sample : kSamples) texts_.emplace_back(sample);
    const TokenizerData& data = folder.data();
    constexpr size_t kMost = 600;
    for (size_t id = 0; id < data.types.size() && texts_.size() < kMost; id++)
      if (data.types[id] == TokenType::control || data.types[id] == TokenType::user_defined)
        texts_.push_back(fmt::format("a{}b", as_typed(data.tokens[id])));
  }

  std::string difference(const TokenizerData& data) const {
    std::unique_ptr<Tokenizer> other;
    try {
      other = make_tokenizer(data);
    } catch (const Error& e) {
      return e.what();
    }
    for (const std::string& text : texts_)
      for (const bool special : {true, false})
        if (const std::string where = difference(*other, text, special); !where.empty()) return where;
    return "";
  }

 private:
  std::string difference(const Tokenizer& other, const std::string& text, bool special) const {
    const std::vector<int> mine = folder_.encode(text, special, special);
    const std::vector<int> others = other.encode(text, special, special);
    if (mine == others) return "";
    const auto at = std::mismatch(mine.begin(), mine.end(), others.begin(), others.end());
    const auto id = [](auto it, const std::vector<int>& ids) { return it == ids.end() ? -1 : *it; };
    return fmt::format("in {}, token {} is {} in the folder, {} in GGUF's nearest", quoted(text),
                       at.first - mine.begin(), id(at.first, mine), id(at.second, others));
  }

  const Tokenizer& folder_;
  std::vector<std::string> texts_;
};

bool ignores_merges(const TokenizerFile& file) {
  return JsonPart(file.rest, "tokenizer.json").part("model").flag("ignore_merges", false);
}

/// The first name of GGUF's whose rules cut as the folder's parts do.
std::string recognised(const Cutting& cutting, bool ignore_merges) {
  const std::vector<std::string> pieces = cutting.pieces_of(kCuts);
  std::string otherwise;
  for (const char* name : kPreTokenizers) {
    if (pre_tokenize(name, kCuts) != pieces) continue;
    if (pre_tokenizer(name).ignore_merges == ignore_merges) return name;
    if (otherwise.empty()) otherwise = name;
  }
  if (otherwise.empty()) refuse("its pre-tokenizer cuts as none of GGUF's names does");
  return otherwise;
}

std::vector<TokenizerData> byte_bpe(TokenizerData data, const TokenizerFile& file, const Cutting& cutting) {
  if (file.ranks_are_ids) refuse("its vocabulary is a list of ranks without merges; tokenizer.json has them");
  data.model = "gpt2";
  data.pre = recognised(cutting, ignores_merges(file));
  for (const auto& [left, right] : file.merges) data.merges.push_back(left + " " + right);
  return {std::move(data)};
}

std::vector<TokenizerData> both_prefixes(TokenizerData data) {
  std::vector<TokenizerData> candidates(2, data);
  candidates[0].add_space_prefix = false;
  candidates[1].add_space_prefix = true;
  return candidates;
}

/// Merges in rank order become scores that fall in the same order. What no merge makes comes last: it would otherwise be
/// put together from neighbours.
std::vector<TokenizerData> sentencepiece(TokenizerData data, const TokenizerFile& file) {
  data.model = "llama";
  data.pre = "default";
  std::unordered_map<std::string, size_t> places;
  for (size_t id = 0; id < data.tokens.size(); id++) {
    places.emplace(data.tokens[id], id);
    data.scores.push_back(-static_cast<float>(file.merges.size() + id));
  }
  for (size_t rank = file.merges.size(); rank-- > 0;) {
    const auto found = places.find(file.merges[rank].first + file.merges[rank].second);
    if (found != places.end()) data.scores[found->second] = -static_cast<float>(rank);
  }
  return both_prefixes(std::move(data));
}

/// [CLS] and [SEP] are what GGUF calls BOS and EOS. A word's first piece begins with ▁, the others lose their ##.
std::vector<TokenizerData> wordpiece(TokenizerData data, const TokenizerFile& file) {
  data.model = "bert";
  const JsonPart root(file.rest, "tokenizer.json");
  const std::string prefix = root.part("model").text("continuing_subword_prefix", "##");
  for (size_t id = 0; id < data.tokens.size(); id++) {
    if (id < data.types.size() && data.types[id] != TokenType::normal) continue;
    std::string& token = data.tokens[id];
    token = token.starts_with(prefix) ? token.substr(prefix.size()) : fmt::format("▁{}", token);
  }
  std::vector<int> before, after;
  if (root.has("post_processor")) read_post_processor(root.part("post_processor"), before, after);
  if (before.size() > 1 || after.size() > 1) refuse("it puts more than one token before or behind a text");
  data.add_bos = !before.empty();
  data.add_eos = !after.empty();
  if (data.add_bos) data.bos = before.front();
  if (data.add_eos) data.eos = after.front();
  return {std::move(data)};
}

const nlohmann::json* find_charsmap(const nlohmann::json& part) {
  if (!part.is_object()) return nullptr;
  if (const auto own = part.find("precompiled_charsmap"); own != part.end() && own->is_string()) return &*own;
  const auto inner = part.find("normalizers");
  if (inner == part.end() || !inner->is_array()) return nullptr;
  for (const nlohmann::json& step : *inner)
    if (const nlohmann::json* found = find_charsmap(step)) return found;
  return nullptr;
}

std::vector<TokenizerData> unigram(TokenizerData data, const TokenizerFile& file) {
  data.model = "t5";
  data.pre = "default";
  for (const auto& [token, score] : file.scored) data.scores.push_back(static_cast<float>(score));
  data.scores.resize(data.tokens.size(), 0.0f);
  if (file.rest.contains("normalizer"))
    if (const nlohmann::json* charsmap = find_charsmap(file.rest["normalizer"]))
      data.precompiled_charsmap = from_base64(charsmap->get<std::string>()).value_or(std::vector<uint8_t>());
  std::vector<TokenizerData> candidates = both_prefixes(std::move(data));
  for (size_t i = 0; i < 2; i++) {
    candidates.push_back(candidates[i]);
    candidates.back().remove_extra_whitespaces = true;
  }
  return candidates;
}

std::vector<TokenizerData> candidates_of(const TokenizerData& data, const TokenizerFile& file) {
  const std::string type = tokenizer_model_type(file);
  const Cutting cutting(file);
  if (type == "BPE" && cutting.byte_model) return byte_bpe(data, file, cutting);
  if (type == "BPE") return sentencepiece(data, file);
  if (type == "WordPiece") return wordpiece(data, file);
  if (type == "Unigram") return unigram(data, file);
  refuse(fmt::format("its model is \"{}\"", type));
}

void note_lost_flags(const TokenizerFile& file, std::vector<std::string>& warnings) {
  std::string first;
  int n = 0;
  const JsonPart root(file.rest, "tokenizer.json");
  for (const JsonPart& part : root.parts("added_tokens")) {
    const AddedToken token = read_added_token(part, 0).token;
    if (!token.rule.left_strip && !token.rule.right_strip && !token.rule.single_word) continue;
    if (n++ == 0) first = token.text;
  }
  if (n > 0)
    warnings.push_back(
        fmt::format("{} special tokens ({}{}) look at the white space or the letters beside them; "
                    "GGUF cannot say so",
                    n, first, n > 1 ? ", …" : ""));
}

}  // namespace

TokenizerInGguf tokenizer_in_gguf(const CompanionFiles& files, const std::string& model_type) {
  const HuggingFaceText text = read_hugging_face_text(files, model_type);
  TokenizerInGguf result{text.tokenizer->data(), text.chat_template, {}};
  TokenizerConfig config = read_tokenizer_config(files);
  const auto file = read_tokenizer_parts(files, config, model_type);
  if (!file) return result;  // SentencePiece's own file says what GGUF says
  const Judge judge(*text.tokenizer);
  std::string nearest;
  for (TokenizerData& candidate : candidates_of(result.data, *file)) {
    const std::string difference = judge.difference(candidate);
    if (difference.empty()) {
      result.data = std::move(candidate);
      note_lost_flags(*file, result.warnings);
      return result;
    }
    if (nearest.empty()) nearest = difference;
  }
  refuse(nearest);
}

}  // namespace liuli
