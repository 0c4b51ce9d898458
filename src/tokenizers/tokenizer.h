// Text to token ids and back.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace liuli {

/// As GGUF numbers them. User-defined tokens spelled like the marker of a turn (<|…|> or <｜…｜>, as
/// DeepSeek-V3 has them) are treated as control tokens, so that a user's text cannot forge a turn.
enum class TokenType : uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

/// Everything a vocabulary file says about its tokenizer; a format's reader fills it (missing ids are −1).
struct TokenizerData {
  std::string model;  ///< "gpt2" byte-level BPE, "llama" SentencePiece BPE, "t5" Unigram, "bert" WordPiece;
                      ///< "tokenizer.json" for what make_tokenizer did not make
  std::string pre;    ///< pre-tokenizer of "gpt2": "llama-bpe", "qwen2", "smollm", "gpt-2", "default", …
  std::vector<std::string> tokens;
  std::vector<float> scores;        ///< "llama" and "t5"; else empty
  std::vector<TokenType> types;     ///< empty: all normal
  std::vector<std::string> merges;  ///< "left right" in rank order
  int bos = -1, eos = -1, unknown = -1, padding = -1;
  bool add_bos = false, add_eos = false, add_space_prefix = false, remove_extra_whitespaces = false;
  std::vector<uint8_t> precompiled_charsmap;  ///< "t5" normaliser; empty: none
};

/// A stretch of a rendered prompt. Control tokens are recognised only where no byte came from the user.
struct TextSpan {
  std::string text;
  bool from_user;
};

/// Encodes and decodes with one vocabulary. Immutable, safe to use from several threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Ids of a text. add_special adds what the vocabulary prescribes (BOS, EOS); parse_special recognises
  /// control tokens in the text (user-defined tokens are always recognised). Invalid UTF-8 is read as U+FFFD.
  std::vector<int> encode(std::string_view text, bool add_special, bool parse_special) const;
  /// Ids of spans that are one text for splitting and merging; control tokens only in spans not from the
  /// user. Adds nothing.
  virtual std::vector<int> encode_spans(const std::vector<TextSpan>& spans) const = 0;

  /// The bytes a token stands for ("" for ids without text: padding rows). Control tokens give their literal
  /// name.
  virtual std::string token_bytes(int id) const = 0;
  /// Text of a sequence; bytes that are not UTF-8 become U+FFFD as the reference implementation does.
  virtual std::string decode(const std::vector<int>& ids) const = 0;

  virtual int vocab_size() const = 0;
  virtual bool is_control(int id) const = 0;
  const TokenizerData& data() const { return data_; }

 protected:
  explicit Tokenizer(TokenizerData data);
  TokenizerData data_;
  std::vector<int> before_, after_;  // what add_special puts around a text
};

/// Builds the tokenizer a vocabulary asks for. Errors: unsupported (model or pre-tokenizer unknown, by name),
/// corrupt_file (lengths disagree, ids or merges that refer to nothing).
std::unique_ptr<Tokenizer> make_tokenizer(TokenizerData data);

/// Turns a stream of tokens into text: holds back the bytes of an unfinished UTF-8 character.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  std::string push(int id);  ///< whole characters that this token completed
  std::string finish();      ///< what is left, as U+FFFD

 private:
  const Tokenizer& tokenizer_;
  std::string pending_;
};

}  // namespace liuli
