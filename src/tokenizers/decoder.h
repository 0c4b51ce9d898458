// From token strings back to text: the chain of steps a tokenizer.json names.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tokenizers/pre_tokenizer_steps.h"
#include "tokenizers/regex.h"

namespace liuli {

/// A token's string on its way to text. Literal ones (added tokens) are not spelled in any alphabet.
struct DecodedToken {
  std::string text;
  bool literal = false;
};

/// One step. Immutable.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual void apply(std::vector<DecodedToken>& tokens) const = 0;
  /// What one token in the middle of a text becomes; may be half a character.
  virtual void apply_alone(DecodedToken& token) const = 0;
};
using DecoderPtr = std::unique_ptr<Decoder>;

DecoderPtr byte_level_decoder();
DecoderPtr wordpiece_decoder(std::string prefix, bool clean_up);
/// Marks become spaces; one that begins the text is dropped when the scheme put it there.
DecoderPtr space_mark_decoder(std::string mark, PrependScheme scheme);
DecoderPtr replace_text_decoder(std::string from, std::string to);
DecoderPtr replace_decoder(Regex pattern, std::string content);
/// Neighbouring <0xHH> are one UTF-8 text, or, if that is ill-formed, one U+FFFD per byte.
DecoderPtr byte_fallback_decoder();
DecoderPtr fuse_decoder();
/// Drops up to `start` times `content` from the left of each token and up to `stop` times from the right.
DecoderPtr strip_decoder(std::string content, size_t start, size_t stop);
/// The end-of-word suffix becomes a space.
DecoderPtr suffix_decoder(std::string suffix);
/// Tokens with spaces between: what stands for a missing decoder.
DecoderPtr spaced_decoder();

}  // namespace liuli
