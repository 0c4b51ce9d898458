#include "convert/made_up_vocabulary.h"

#include <fmt/core.h>

#include "liuli/error.h"

namespace liuli {
namespace {

/// Code points below 0x800 as UTF-8.
std::string utf8(unsigned code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
}

/// GPT-2's alphabet: a visible byte of Latin-1 is itself, the other 68 are U+0100 and on, in order.
std::vector<std::string> byte_alphabet() {
  std::vector<std::string> letters;
  unsigned hidden = 0x100;
  for (unsigned byte = 0; byte < 256; byte++) {
    const bool visible = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    letters.push_back(utf8(visible ? byte : hidden++));
  }
  return letters;
}

constexpr const char* kSpace = "\xC4\xA0";  // Ġ, the space's letter

/// Words of one letter more, from each word in turn: 27 beginnings (26 letters and the space) give 702 words of two
/// letters, those 18,252 of three, those 474,552 of four.
class Words {
 public:
  explicit Words(MadeUpVocabulary& out) : out_(out) {
    generation_.push_back(kSpace);
    for (char letter = 'a'; letter <= 'z'; letter++) generation_.emplace_back(1, letter);
  }

  std::string next() {
    if (letter_ > 'z') {
      letter_ = 'a';
      parent_++;
    }
    if (parent_ == generation_.size()) {
      generation_ = std::move(children_);
      children_.clear();
      parent_ = 0;
    }
    const std::string& left = generation_[parent_];
    out_.merges.push_back(fmt::format("{} {}", left, letter_));
    children_.push_back(left + letter_++);
    return children_.back();
  }

 private:
  MadeUpVocabulary& out_;
  std::vector<std::string> generation_, children_;
  size_t parent_ = 0;
  char letter_ = 'a';
};

void check(int64_t size, int64_t bos, int64_t eos) {
  const int64_t controls = (bos >= 0 ? 1 : 0) + (eos >= 0 && eos != bos ? 1 : 0);
  if (size < 256 + controls)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a vocabulary of {} tokens has no room for 256 bytes and {} control tokens", size,
                            controls));
  if (bos >= size || eos >= size)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("control tokens {} and {} lie outside a vocabulary of {}", bos, eos, size));
}

}  // namespace

MadeUpVocabulary made_up_vocabulary(int64_t size, int64_t bos, int64_t eos) {
  constexpr int32_t kNormal = 1, kControl = 3;
  check(size, bos, eos);
  const std::vector<std::string> letters = byte_alphabet();
  MadeUpVocabulary v;
  Words words(v);
  size_t bytes = 0;
  for (int64_t id = 0; id < size; id++) {
    const bool control = id == bos || id == eos;
    v.types.push_back(control ? kControl : kNormal);
    if (control) {
      v.tokens.emplace_back(bos == eos  ? "<|endoftext|>"
                            : id == bos ? "<|begin_of_text|>"
                                        : "<|end_of_text|>");
    } else {
      v.tokens.push_back(bytes < letters.size() ? letters[bytes++] : words.next());
    }
  }
  return v;
}

}  // namespace liuli
