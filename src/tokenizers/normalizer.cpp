#include "tokenizers/normalizer.h"

#include <algorithm>

#include "tokenizers/byte_alphabet.h"

namespace liuli {

void Rewrite::put(std::string_view content, size_t begin, size_t bytes) {
  out_.text += content;
  if (text_.from_user.empty()) return;
  const std::string_view marks = std::string_view(text_.from_user).substr(begin, bytes);
  out_.from_user.append(content.size(), marks.find('\1') == std::string_view::npos ? '\0' : '\1');
}

Rewrite::~Rewrite() { std::swap(text_, out_); }

namespace {

// Calls visit(character, begin, bytes) for every character.
template <class Visit>
void each_character(std::string_view text, Visit visit) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = read_utf8(text, at);
    visit(c.code_point, at, static_cast<size_t>(c.bytes));
    at += static_cast<size_t>(c.bytes);
  }
}

// A normaliser that replaces each character on its own: transform(code point, out) appends what it becomes.
template <class Transform>
class PerCharacter : public Normalizer {
 public:
  explicit PerCharacter(Transform transform) : transform_(std::move(transform)) {}
  void apply(MarkedText& text) const override {
    Rewrite rewrite(text);
    std::string out;
    each_character(text.text, [&](char32_t c, size_t begin, size_t bytes) {
      out.clear();
      transform_(c, out);
      rewrite.put(out, begin, bytes);
    });
  }

 private:
  Transform transform_;
};

template <class Transform>
NormalizerPtr per_character(Transform transform) {
  return std::make_unique<PerCharacter<Transform>>(std::move(transform));
}

// Normal forms depend on neighbours. Stretches of one origin are normalised apart when that gives the same
// text; else what changed is taken for the user's.
class UnicodeNormalizer : public Normalizer {
 public:
  explicit UnicodeNormalizer(NormalForm form) : form_(form) {}
  void apply(MarkedText& text) const override {
    std::string whole = to_normal_form(text.text, form_);
    if (whole == text.text) return;
    if (text.from_user.empty()) return void(text.text = std::move(whole));
    MarkedText apart;
    for (size_t begin = 0, end = 0; begin < text.text.size(); begin = end) {
      end = std::min(text.from_user.find_first_not_of(text.from_user[begin], begin), text.text.size());
      apart.text += to_normal_form(std::string_view(text.text).substr(begin, end - begin), form_);
      apart.from_user.resize(apart.text.size(), text.from_user[begin]);
    }
    if (apart.text != whole) {
      apart.from_user.assign(whole.size(), '\1');
      apart.text = std::move(whole);
    }
    text = std::move(apart);
  }

 private:
  NormalForm form_;
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(MarkedText& text) const override {
    size_t first = text.text.size(), last = 0;  // of what is not white space
    each_character(text.text, [&](char32_t c, size_t begin, size_t bytes) {
      if (char_class(c) & kSpace) return;
      first = std::min(first, begin);
      last = begin + bytes;
    });
    const size_t begin = left_ ? first : 0, end = right_ ? std::max(last, begin) : text.text.size();
    Rewrite(text).keep(begin, end - begin);
  }

 private:
  bool left_, right_;
};

class Replace : public Normalizer {
 public:
  Replace(Regex pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(MarkedText& text) const override {
    Rewrite rewrite(text);
    size_t kept = 0;
    for (size_t from = 0, begin = 0, end = 0;
         from <= text.text.size() && pattern_.find(text.text, from, begin, end);) {
      rewrite.keep(kept, begin - kept);
      rewrite.put(content_, begin, end - begin);
      kept = from = end;
      if (begin < end) continue;
      if (end >= text.text.size()) break;
      from += static_cast<size_t>(read_utf8(text.text, end).bytes);
    }
    rewrite.keep(kept, text.text.size() - kept);
  }

 private:
  Regex pattern_;
  std::string content_;
};

class ReplaceText : public Normalizer {
 public:
  ReplaceText(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}
  void apply(MarkedText& text) const override {
    size_t at = text.text.find(from_);
    if (at == std::string::npos) return;
    Rewrite rewrite(text);
    size_t kept = 0;
    for (; at != std::string::npos; at = text.text.find(from_, kept)) {
      rewrite.keep(kept, at - kept);
      rewrite.put(to_, at, from_.size());
      kept = at + from_.size();
    }
    rewrite.keep(kept, text.text.size() - kept);
  }

 private:
  std::string from_, to_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  void apply(MarkedText& text) const override {
    if (text.text.empty()) return;
    Rewrite rewrite(text);
    rewrite.put(prefix_, 0, 0);
    rewrite.keep(0, text.text.size());
  }

 private:
  std::string prefix_;
};

// As Hugging Face applies SentencePiece's table: to grapheme clusters of fewer than 6 bytes as a whole, else
// to characters, and in both cases with the shortest entry that begins them.
class CharsmapNormalizer : public Normalizer {
 public:
  explicit CharsmapNormalizer(Charsmap charsmap) : charsmap_(std::move(charsmap)) {}
  void apply(MarkedText& text) const override {
    constexpr size_t kLongestWhole = 5;
    Rewrite rewrite(text);
    const std::string_view whole = text.text;
    for (size_t at = 0, bytes = 0; at < whole.size(); at += bytes) {
      bytes = grapheme_bytes(whole, at);
      const std::string_view cluster = whole.substr(at, bytes);
      const auto found = bytes <= kLongestWhole ? charsmap_.shortest_prefix(cluster) : std::nullopt;
      if (found) {
        rewrite.put(*found, at, bytes);
        continue;
      }
      each_character(cluster, [&](char32_t, size_t begin, size_t size) {
        const std::string_view character = cluster.substr(begin, size);
        rewrite.put(charsmap_.shortest_prefix(character).value_or(character), at + begin, size);
      });
    }
  }

 private:
  Charsmap charsmap_;
};

bool nmt_drops(char32_t c) {
  return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
}
bool nmt_space(char32_t c) {
  return c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
         c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

// Hugging Face's bounds: its third extension block begins at 2B920.
bool chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

// The four steps in BERT's order.
class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(const BertRules& rules) {
    if (rules.clean_text)
      steps_.push_back(per_character([](char32_t c, std::string& out) {
        const bool space = char_class(c) & kSpace;
        const bool control = is_other(c) && c != '\t' && c != '\n' && c != '\r';
        if (c != 0 && c != kReplacementChar && !control) append_utf8(out, space ? U' ' : c);
      }));
    if (rules.chinese_characters)
      steps_.push_back(per_character([](char32_t c, std::string& out) {
        if (chinese(c)) out += ' ';
        append_utf8(out, c);
        if (chinese(c)) out += ' ';
      }));
    if (rules.strip_accents) {
      steps_.push_back(unicode_normalizer(NormalForm::nfd));
      steps_.push_back(per_character([](char32_t c, std::string& out) {
        if (!is_nonspacing_mark(c)) append_utf8(out, c);
      }));
    }
    if (rules.lowercase) steps_.push_back(lowercase_normalizer());
  }
  void apply(MarkedText& text) const override {
    for (const NormalizerPtr& step : steps_) step->apply(text);
  }

 private:
  std::vector<NormalizerPtr> steps_;
};

}  // namespace

NormalizerPtr unicode_normalizer(NormalForm form) { return std::make_unique<UnicodeNormalizer>(form); }
NormalizerPtr lowercase_normalizer() {
  return per_character([](char32_t c, std::string& out) { append_lowercase(out, c); });
}
NormalizerPtr strip_accents_normalizer() {
  return per_character([](char32_t c, std::string& out) {
    if (!(char_class(c) & kMark)) append_utf8(out, c);
  });
}
NormalizerPtr strip_normalizer(bool left, bool right) { return std::make_unique<Strip>(left, right); }
NormalizerPtr replace_normalizer(Regex pattern, std::string content) {
  return std::make_unique<Replace>(std::move(pattern), std::move(content));
}
NormalizerPtr replace_text_normalizer(std::string from, std::string to) {
  return std::make_unique<ReplaceText>(std::move(from), std::move(to));
}
NormalizerPtr prepend_normalizer(std::string text) { return std::make_unique<Prepend>(std::move(text)); }
NormalizerPtr nmt_normalizer() {
  return per_character([](char32_t c, std::string& out) {
    if (!nmt_drops(c)) append_utf8(out, nmt_space(c) ? U' ' : c);
  });
}
NormalizerPtr charsmap_normalizer(Charsmap charsmap) {
  return std::make_unique<CharsmapNormalizer>(std::move(charsmap));
}
NormalizerPtr byte_level_normalizer() {
  return per_character([](char32_t c, std::string& out) {
    std::string bytes;
    append_utf8(bytes, c);
    for (const char byte : bytes) out += byte_character(static_cast<uint8_t>(byte));
  });
}
NormalizerPtr bert_normalizer(const BertRules& rules) { return std::make_unique<BertNormalizer>(rules); }

}  // namespace liuli
