// What happens to a text before it is cut into pieces.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tokenizers/charsmap.h"
#include "tokenizers/regex.h"
#include "tokenizers/special_tokens.h"
#include "tokenizers/unicode.h"

namespace liuli {

/// One step of rewriting. Immutable. A text's marks follow its characters; where there are none (nothing is
/// from the user, or nobody asks) none are made.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(MarkedText& text) const = 0;
};
using NormalizerPtr = std::unique_ptr<Normalizer>;

struct BertRules {
  bool clean_text = true, chinese_characters = true, strip_accents = true, lowercase = true;
};

NormalizerPtr unicode_normalizer(NormalForm form);
NormalizerPtr lowercase_normalizer();
NormalizerPtr strip_accents_normalizer();
NormalizerPtr strip_normalizer(bool left, bool right);
NormalizerPtr replace_normalizer(Regex pattern, std::string content);
NormalizerPtr replace_text_normalizer(std::string from, std::string to);
NormalizerPtr prepend_normalizer(std::string text);
NormalizerPtr nmt_normalizer();
NormalizerPtr charsmap_normalizer(Charsmap charsmap);
NormalizerPtr byte_level_normalizer();
NormalizerPtr bert_normalizer(const BertRules& rules);

/// Builds a text out of stretches of another, so that marks follow.
class Rewrite {
 public:
  explicit Rewrite(MarkedText& text) : text_(text) {}
  ~Rewrite();  ///< the text becomes what was put
  Rewrite(const Rewrite&) = delete;
  Rewrite& operator=(const Rewrite&) = delete;

  void keep(size_t begin, size_t bytes) {
    put(std::string_view(text_.text).substr(begin, bytes), begin, bytes);
  }
  /// `content` stands for `bytes` bytes of the old text (0: for none, and is nobody's).
  void put(std::string_view content, size_t begin, size_t bytes);

 private:
  MarkedText& text_;
  MarkedText out_;
};

}  // namespace liuli
