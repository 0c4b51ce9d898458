#include "tokenizers/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "liuli/error.h"
#include "tokenizers/byte_alphabet.h"
#include "tokenizers/unigram.h"
#include "tokenizers/wordpiece.h"

namespace liuli {
namespace {

// Puts the parts together, one after the other.
class Builder {
 public:
  Builder(TokenizerFile file, const SpecialNames& names)
      : file_(std::move(file)),
        root_(file_.rest, "tokenizer.json"),
        model_(root_.part("model")),
        names_(names) {}

  std::unique_ptr<Tokenizer> build(const std::vector<AddedEntry>& more) {
    data_.model = "tokenizer.json";
    type_ = tokenizer_model_type(file_);
    read_vocabulary();
    for (const JsonPart& part : root_.parts("added_tokens"))
      add(read_added_token(part, part.integer("id", -1)));
    for (const AddedEntry& entry : more)
      if (added_.count(entry.token.text) == 0) add(entry);
    find_special_ids();
    if (root_.has("normalizer")) read_normalizer(root_.part("normalizer"), parts_.normalizers);
    if (root_.has("pre_tokenizer"))
      read_pre_tokenizer(root_.part("pre_tokenizer"), byte_model_, parts_.pre_tokenizer);
    if (root_.has("decoder")) read_decoder(root_.part("decoder"), parts_.decoders);
    if (parts_.decoders.empty())
      parts_.decoders.push_back(root_.has("decoder") ? fuse_decoder() : spaced_decoder());
    read_template();
    parts_.model = make_model();
    return std::make_unique<PipelineTokenizer>(std::move(data_), std::move(parts_));
  }

 private:
  // Ids may have gaps, but the table of tokens must not be much larger than what fills it.
  void put(int64_t id, std::string text, TokenType type) {
    const int64_t most = 65536 + 16 * static_cast<int64_t>(file_.vocabulary.size() + file_.scored.size());
    if (id < 0 || id >= most)
      throw Error(
          ErrorCode::corrupt_file,
          fmt::format("tokenizer.json: token \"{}\" has the id {}, outside 0 … {}", text, id, most - 1));
    const auto at = static_cast<size_t>(id);
    if (data_.tokens.size() <= at) {
      data_.tokens.resize(at + 1);
      data_.types.resize(at + 1, TokenType::unused);
    }
    data_.tokens[at] = std::move(text);
    data_.types[at] = type;
  }

  void read_vocabulary() {
    const bool bytes = model_.flag("byte_fallback", false);
    int64_t largest = 0;
    for (const auto& [token, id] : file_.vocabulary) largest = std::max(largest, id);
    if (largest < static_cast<int64_t>(4 * file_.vocabulary.size())) {
      data_.tokens.reserve(static_cast<size_t>(largest) + 1024);
      data_.types.reserve(static_cast<size_t>(largest) + 1024);
    }
    const auto type = [&](const std::string& token) {
      return bytes && byte_token_value(token) >= 0 ? TokenType::byte : TokenType::normal;
    };
    for (const auto& [token, id] : file_.vocabulary) put(id, token, type(token));
    for (size_t id = 0; id < file_.scored.size(); ++id)
      put(static_cast<int64_t>(id), file_.scored[id].first, type(file_.scored[id].first));
    if (data_.tokens.empty()) model_.corrupt("has no vocabulary");
    ids_ = TokenIndex(file_.vocabulary.size() + file_.scored.size());
    for (const auto& [token, id] : file_.vocabulary) ids_.add(token, static_cast<int>(id));
    for (size_t id = 0; id < file_.scored.size(); ++id)
      ids_.add(file_.scored[id].first, static_cast<int>(id));
  }

  int id_of(const std::string& token) const {
    const auto added = added_.find(token);
    return added != added_.end() ? added->second : ids_.find(token);
  }

  // A token that the model has keeps the model's id, whatever the entry says: so does Hugging Face.
  void add(AddedEntry entry) {
    if (entry.token.text.empty()) return;
    const int known = ids_.find(entry.token.text);
    const int64_t id = known >= 0 ? known : entry.id;
    put(id, entry.token.text, entry.special ? TokenType::control : TokenType::user_defined);
    entry.token.rule.id = static_cast<int>(id);
    added_.emplace(entry.token.text, entry.token.rule.id);
    parts_.added.push_back(std::move(entry.token));
  }

  // Tokens that the configuration names are control tokens, also when the file does not list them.
  int special(const std::string& name) {
    if (name.empty()) return -1;
    const int id = id_of(name);
    if (id < 0) return -1;
    if (added_.emplace(name, id).second) parts_.added.push_back({name, {id}, false});
    if (data_.types[static_cast<size_t>(id)] != TokenType::byte)
      data_.types[static_cast<size_t>(id)] = TokenType::control;
    return id;
  }

  void find_special_ids() {
    data_.bos = special(names_.bos);
    data_.eos = special(names_.eos);
    data_.padding = special(names_.padding);
    special(names_.unknown);
    for (const std::string& name : names_.others) special(name);
    const std::string unknown = model_.text("unk_token", "");
    data_.unknown = unknown.empty() ? -1 : id_of(unknown);
    if (type_ == "Unigram") data_.unknown = unigram_unknown();
    if (!unknown.empty() && data_.unknown < 0 && type_ != "WordLevel")
      model_.corrupt(fmt::format("names the unknown token \"{}\", which the vocabulary lacks", unknown));
  }

  int unigram_unknown() const {
    const int64_t id = model_.integer("unk_id", -1);
    if (id >= static_cast<int64_t>(file_.scored.size()))
      model_.corrupt(fmt::format("\"unk_id\" is {}, the vocabulary has {}", id, file_.scored.size()));
    return static_cast<int>(std::max<int64_t>(id, -1));
  }

  void read_template() {
    if (root_.has("post_processor"))
      read_post_processor(root_.part("post_processor"), parts_.before, parts_.after);
    if (names_.add_bos || names_.add_eos) {
      parts_.before.clear();
      parts_.after.clear();
      if (names_.add_bos.value_or(false) && data_.bos >= 0) parts_.before = {data_.bos};
      if (names_.add_eos.value_or(false) && data_.eos >= 0) parts_.after = {data_.eos};
    }
    for (const std::vector<int>* ids : {&parts_.before, &parts_.after})
      for (const int id : *ids)
        if (static_cast<size_t>(id) >= data_.tokens.size())
          root_.corrupt(fmt::format("adds the token {}, the vocabulary has {}", id, data_.tokens.size()));
    data_.add_bos = data_.bos >= 0 && parts_.before == std::vector<int>{data_.bos};
    data_.add_eos = data_.eos >= 0 && parts_.after == std::vector<int>{data_.eos};
  }

  std::unique_ptr<TokenModel> make_model() {
    if (type_ == "BPE") return make_bpe();
    if (byte_model_) parts_.pre_tokenizer.push_back(byte_spelling_step());
    if (type_ == "WordPiece") return make_wordpiece();
    if (type_ == "WordLevel") return std::make_unique<WordLevel>(data_);
    if (type_ == "Unigram") return make_unigram();
    model_.unsupported(fmt::format("model \"{}\"", type_));
  }

  std::unique_ptr<TokenModel> make_bpe() {
    if (model_.number("dropout", 0) != 0) model_.unsupported("dropout: the ids would be drawn by lot");
    BpeSettings settings;
    settings.ignore_merges = model_.flag("ignore_merges", false);
    settings.byte_fallback = model_.flag("byte_fallback", false);
    settings.fuse_unknown = model_.flag("fuse_unk", false);
    settings.prefix = model_.text("continuing_subword_prefix", "");
    settings.suffix = model_.text("end_of_word_suffix", "");
    settings.unknown = data_.unknown;
    settings.byte_level = byte_model_ && !settings.byte_fallback && settings.prefix.empty() &&
                          settings.suffix.empty() && !(settings.fuse_unknown && settings.unknown >= 0);
    if (byte_model_ && !settings.byte_level) parts_.pre_tokenizer.push_back(byte_spelling_step());
    if (file_.ranks_are_ids) return std::make_unique<Bpe>(data_, settings);
    return std::make_unique<Bpe>(data_, file_.merges, settings);
  }

  std::unique_ptr<TokenModel> make_wordpiece() {
    if (data_.unknown < 0) model_.corrupt("has no \"unk_token\"");
    const int64_t longest = model_.integer("max_input_chars_per_word", 100);
    if (longest < 0) model_.corrupt(fmt::format("\"max_input_chars_per_word\" is {}", longest));
    return std::make_unique<WordPiece>(data_, model_.text("continuing_subword_prefix", "##"),
                                       static_cast<size_t>(longest));
  }

  std::unique_ptr<TokenModel> make_unigram() {
    std::vector<double> scores;
    for (const auto& [token, score] : file_.scored) {
      if (!std::isfinite(score)) model_.corrupt(fmt::format("token \"{}\" has the score {}", token, score));
      scores.push_back(score);
    }
    return std::make_unique<UnigramModel>(data_, scores, model_.flag("byte_fallback", false));
  }

  TokenizerFile file_;
  JsonPart root_, model_;
  const SpecialNames& names_;
  std::string type_;
  TokenizerData data_;
  Pipeline parts_;
  TokenIndex ids_;                              // of the model's own tokens; views file_
  std::unordered_map<std::string, int> added_;  // token → id
  bool byte_model_ = false;
};

}  // namespace

std::string tokenizer_model_type(const TokenizerFile& file) {
  const JsonPart root(file.rest, "tokenizer.json"), model = root.part("model");
  if (model.has("type")) return model.text("type");
  if (!file.scored.empty()) return "Unigram";
  if (!file.merges.empty()) return "BPE";
  return model.has("max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

AddedEntry read_added_token(const JsonPart& part, int64_t id) {
  AddedEntry entry;
  entry.id = id;
  entry.token.text = part.text("content");
  entry.special = part.flag("special", false);
  entry.token.normalized = part.flag("normalized", !entry.special);
  entry.token.rule.single_word = part.flag("single_word", false);
  entry.token.rule.left_strip = part.flag("lstrip", false);
  entry.token.rule.right_strip = part.flag("rstrip", false);
  entry.token.rule.alone = part.flag("alone", false);
  return entry;
}

std::unique_ptr<Tokenizer> build_tokenizer(TokenizerFile file, const SpecialNames& names,
                                           const std::vector<AddedEntry>& more) {
  return Builder(std::move(file), names).build(more);
}

}  // namespace liuli
