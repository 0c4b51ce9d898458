#include "train/bpe_trainer.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include <fmt/format.h>

#include "liuli/error.h"
#include "tokenizers/byte_alphabet.h"
#include "tokenizers/pre_tokenizer.h"
#include "tokenizers/unicode.h"

namespace liuli {
namespace {

using Pair = std::pair<int, int>;
struct PairHash {
  size_t operator()(const Pair& p) const {
    return (static_cast<size_t>(static_cast<uint32_t>(p.first)) << 32 | static_cast<uint32_t>(p.second)) *
           0x9e3779b97f4a7c15u;
  }
};

struct Word {
  std::vector<int> symbols;
  int64_t count;
};

// A pair as it was counted when it came on the heap; counts fall behind and are put right when it comes out.
struct Candidate {
  int64_t count;
  Pair pair;
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

void check_size(const TokenizerTraining& settings, size_t beginning) {
  if (settings.vocab_size < static_cast<int64_t>(beginning))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a vocabulary of {} is too small: special tokens and bytes alone are {}",
                            settings.vocab_size, beginning));
}

class BpeTrainer {
 public:
  BpeTrainer(const WordCounts& counts, const TokenizerTraining& settings) : settings_(settings) {
    for (const std::string& token : settings.special) add_token(token);
    std::vector<std::string> bytes;
    for (int b = 0; b < 256; b++) bytes.push_back(byte_character(static_cast<uint8_t>(b)));
    std::sort(bytes.begin(), bytes.end());  // UTF-8 sorts as code points do
    for (const std::string& byte : bytes) add_token(byte);
    check_size(settings, result_.tokens.size());
    for (const auto& [text, count] : counts.words()) add_word(text, count);
  }

  TrainedVocabulary train() {
    for (const auto& [pair, count] : counts_) heap_.push({count, pair});
    const auto beginning = static_cast<int64_t>(result_.tokens.size());
    while (static_cast<int64_t>(result_.tokens.size()) < settings_.vocab_size && !heap_.empty()) {
      Candidate best = heap_.top();
      heap_.pop();
      const int64_t count = counts_[best.pair];
      if (count != best.count) {
        if (count > 0) heap_.push({count, best.pair});
        continue;
      }
      if (count < std::max<int64_t>(settings_.min_count, 1)) break;
      merge(best.pair);
      if (settings_.on_progress && result_.merges.size() % 64 == 0)
        settings_.on_progress(static_cast<int64_t>(result_.tokens.size()) - beginning,
                              settings_.vocab_size - beginning);
    }
    return std::move(result_);
  }

 private:
  // Two ways of merging may spell the same token.
  int add_token(const std::string& token) {
    const auto [at, fresh] = ids_.emplace(token, static_cast<int>(result_.tokens.size()));
    if (fresh) result_.tokens.push_back(token);
    return at->second;
  }

  void add_word(const std::string& text, int64_t count) {
    Word word{{}, count};
    for (const char c : text) word.symbols.push_back(ids_.at(byte_character(static_cast<uint8_t>(c))));
    if (word.symbols.size() < 2) return;
    words_.push_back(std::move(word));
    count_pairs(words_.size() - 1, count, nullptr);
  }

  void count_pairs(size_t index, int64_t times, std::vector<Pair>* grown) {
    const std::vector<int>& s = words_[index].symbols;
    for (size_t i = 0; i + 1 < s.size(); i++) {
      const Pair pair{s[i], s[i + 1]};
      counts_[pair] += times;
      if (times < 0) continue;
      std::vector<uint32_t>& places = places_[pair];
      if (places.empty() || places.back() != index) places.push_back(static_cast<uint32_t>(index));
      if (grown != nullptr) grown->push_back(pair);
    }
  }

  void merge(const Pair& pair) {
    const std::string left = result_.tokens[static_cast<size_t>(pair.first)],
                      right = result_.tokens[static_cast<size_t>(pair.second)];
    const int id = add_token(left + right);
    result_.merges.emplace_back(left, right);
    std::vector<uint32_t> places = std::move(places_[pair]);
    places_.erase(pair);
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    std::vector<Pair> grown;
    for (const uint32_t index : places) {
      if (!contains(words_[index].symbols, pair)) continue;  // merged away since
      count_pairs(index, -words_[index].count, nullptr);
      replace(words_[index].symbols, pair, id);
      count_pairs(index, words_[index].count, &grown);
    }
    std::sort(grown.begin(), grown.end());
    grown.erase(std::unique(grown.begin(), grown.end()), grown.end());
    // Only pairs with the new token can have become more frequent.
    for (const Pair& p : grown)
      if (p.first == id || p.second == id) heap_.push({counts_[p], p});
    counts_.erase(pair);
  }

  static bool contains(const std::vector<int>& symbols, const Pair& pair) {
    for (size_t i = 0; i + 1 < symbols.size(); i++)
      if (symbols[i] == pair.first && symbols[i + 1] == pair.second) return true;
    return false;
  }

  static void replace(std::vector<int>& symbols, const Pair& pair, int id) {
    size_t to = 0;
    for (size_t i = 0; i < symbols.size(); i++) {
      const bool here = i + 1 < symbols.size() && symbols[i] == pair.first && symbols[i + 1] == pair.second;
      symbols[to++] = here ? id : symbols[i];
      i += here;
    }
    symbols.resize(to);
  }

  const TokenizerTraining& settings_;
  TrainedVocabulary result_;
  std::unordered_map<std::string, int> ids_;
  std::vector<Word> words_;
  std::unordered_map<Pair, int64_t, PairHash> counts_;
  std::unordered_map<Pair, std::vector<uint32_t>, PairHash> places_;  // the words a pair stands in, or stood
  std::priority_queue<Candidate> heap_;
};

constexpr const char* kSpaceMark = "▁";

}  // namespace

void WordCounts::add(std::string_view text) {
  if (kind_ != "characters") {
    for (std::string& word : pre_tokenize(kind_, text)) words_[std::move(word)]++;
    return;
  }
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = read_utf8(text, at);
    if (c.valid) words_[std::string(text.substr(at, static_cast<size_t>(c.bytes)))]++;
    at += static_cast<size_t>(c.bytes);
  }
}

TrainedVocabulary train_bpe(const WordCounts& counts, const TokenizerTraining& settings) {
  return BpeTrainer(counts, settings).train();
}

TrainedVocabulary train_characters(const WordCounts& counts, const TokenizerTraining& settings) {
  TrainedVocabulary vocabulary;
  vocabulary.tokens = settings.special;
  vocabulary.tokens.push_back("<unk>");
  for (int b = 0; b < 256; b++) vocabulary.tokens.push_back(fmt::format("<0x{:02X}>", b));
  check_size(settings, vocabulary.tokens.size());
  std::vector<std::pair<std::string, int64_t>> characters(counts.words().begin(), counts.words().end());
  std::stable_sort(characters.begin(), characters.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  // A text without a space still gets the space's token: as bytes its mark would stay a mark when decoded. Its place is
  // kept free until it is taken.
  bool space = false;
  for (const auto& [text, count] : characters) {
    const int64_t room = settings.vocab_size - static_cast<int64_t>(vocabulary.tokens.size());
    if (room <= (space || text == " " ? 0 : 1) || count < settings.min_count) break;
    space = space || text == " ";
    vocabulary.tokens.push_back(text == " " ? kSpaceMark : text);
  }
  if (!space && static_cast<int64_t>(vocabulary.tokens.size()) < settings.vocab_size)
    vocabulary.tokens.push_back(kSpaceMark);
  return vocabulary;
}

}  // namespace liuli
