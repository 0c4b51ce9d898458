// The tokenizer that is put together from parts: added tokens, normalisers, pre-tokenizers, a model, decoders.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tokenizers/decoder.h"
#include "tokenizers/normalizer.h"
#include "tokenizers/pre_tokenizer_steps.h"
#include "tokenizers/special_tokens.h"
#include "tokenizers/token_model.h"

namespace liuli {

/// A token that is matched as a whole, in the raw text or (normalized) in the text behind the normalisers.
struct AddedToken {
  std::string text;
  MatchRule rule;
  bool normalized = false;
};

struct Pipeline {
  std::vector<NormalizerPtr> normalizers;
  std::vector<PreTokenizerStepPtr> pre_tokenizer;
  std::unique_ptr<TokenModel> model;
  std::vector<DecoderPtr> decoders;
  std::vector<AddedToken> added;
  std::vector<int> before, after;  ///< what add_special puts around a text
};

class PipelineTokenizer : public TypedTokenizer {
 public:
  /// The model views the tokens of `data`, whose heap memory moves along. Rules of added tokens follow the
  /// types of `data`, control or not.
  PipelineTokenizer(TokenizerData data, Pipeline parts);

  std::vector<int> encode_spans(const std::vector<TextSpan>& spans) const override;
  std::string token_bytes(int id) const override;
  std::string decode(const std::vector<int>& ids) const override;

 private:
  DecodedToken token(int id) const;
  void encode_normalized(const MarkedText& text, bool at_start, std::vector<int>& ids) const;

  Pipeline parts_;
  SpecialTokens raw_, normalized_;
};

/// Byte-level BPE as a GGUF file describes it. Errors: unsupported (pre-tokenizer), corrupt_file (merges).
std::unique_ptr<Tokenizer> make_byte_bpe(TokenizerData data);
/// WordPiece as a GGUF file describes it: ▁ begins a word, what continues one has no mark.
std::unique_ptr<Tokenizer> make_gguf_wordpiece(TokenizerData data);

}  // namespace liuli
