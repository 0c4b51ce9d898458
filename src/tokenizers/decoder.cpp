#include "tokenizers/decoder.h"

#include <utility>

#include "tokenizers/byte_alphabet.h"
#include "tokenizers/normalizer.h"
#include "tokenizers/unicode.h"

namespace liuli {
namespace {

std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  MarkedText marked{text, ""};
  replace_text_normalizer(from, to)->apply(marked);
  return std::move(marked.text);
}

// A step that treats each token on its own, wherever it stands.
class EachToken : public Decoder {
 public:
  void apply(std::vector<DecodedToken>& tokens) const override {
    for (DecodedToken& token : tokens) apply_alone(token);
  }
};

class ByteLevelDecoder : public EachToken {
 public:
  void apply_alone(DecodedToken& token) const override {
    if (!token.literal) token.text = bytes_of_spelling(token.text);
  }
};

class WordPieceDecoder : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool clean_up) : prefix_(std::move(prefix)), clean_up_(clean_up) {}
  void apply(std::vector<DecodedToken>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0) join(tokens[i].text);
      if (clean_up_) tokens[i].text = cleaned(tokens[i].text);
    }
  }
  void apply_alone(DecodedToken& token) const override { join(token.text); }

 private:
  void join(std::string& token) const {
    if (!prefix_.empty() && token.starts_with(prefix_))
      token.erase(0, prefix_.size());
    else
      token.insert(0, 1, ' ');
  }

  static std::string cleaned(std::string text) {
    constexpr std::pair<const char*, const char*> kRules[] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : kRules) text = replaced(text, from, to);
    return text;
  }

  std::string prefix_;
  bool clean_up_;
};

class SpaceMarkDecoder : public Decoder {
 public:
  SpaceMarkDecoder(std::string mark, PrependScheme scheme) : mark_(std::move(mark)), scheme_(scheme) {}
  void apply(std::vector<DecodedToken>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool dropped = i == 0 && scheme_ != PrependScheme::never;
      tokens[i].text = replaced(tokens[i].text, mark_, dropped ? "" : " ");
    }
  }
  void apply_alone(DecodedToken& token) const override { token.text = replaced(token.text, mark_, " "); }

 private:
  std::string mark_;
  PrependScheme scheme_;
};

class ReplaceDecoder : public EachToken {
 public:
  explicit ReplaceDecoder(NormalizerPtr replace) : replace_(std::move(replace)) {}
  void apply_alone(DecodedToken& token) const override {
    if (!valid_utf8(token.text)) return;  // half a character
    MarkedText text{std::move(token.text), ""};
    replace_->apply(text);
    token.text = std::move(text.text);
  }

 private:
  NormalizerPtr replace_;
};

class ByteFallbackDecoder : public Decoder {
 public:
  void apply(std::vector<DecodedToken>& tokens) const override {
    std::vector<DecodedToken> out;
    std::string run;
    const auto end_run = [&] {
      std::string text = run;
      if (!valid_utf8(run)) {
        text.clear();
        for (size_t i = 0; i < run.size(); ++i) append_utf8(text, kReplacementChar);
      }
      if (!run.empty()) out.push_back({std::move(text), false});
      run.clear();
    };
    for (DecodedToken& token : tokens) {
      const int byte = byte_token_value(token.text);
      if (byte >= 0) {
        run.push_back(static_cast<char>(byte));
        continue;
      }
      end_run();
      out.push_back(std::move(token));
    }
    end_run();
    tokens = std::move(out);
  }
  void apply_alone(DecodedToken& token) const override {
    const int byte = byte_token_value(token.text);
    if (byte >= 0) token.text = std::string(1, static_cast<char>(byte));
  }
};

class FuseDecoder : public Decoder {
 public:
  void apply(std::vector<DecodedToken>& tokens) const override {
    DecodedToken all;
    for (const DecodedToken& token : tokens) all.text += token.text;
    tokens = {std::move(all)};
  }
  void apply_alone(DecodedToken&) const override {}
};

// In a stream the start and the end of the text are not in sight: a token alone stays as it is.
class StripDecoder : public Decoder {
 public:
  StripDecoder(std::string content, size_t start, size_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void apply(std::vector<DecodedToken>& tokens) const override {
    for (DecodedToken& token : tokens) {
      for (size_t n = 0; n < start_ && token.text.starts_with(content_); ++n)
        token.text.erase(0, content_.size());
      for (size_t n = 0; n < stop_ && token.text.ends_with(content_); ++n)
        token.text.resize(token.text.size() - content_.size());
    }
  }
  void apply_alone(DecodedToken&) const override {}

 private:
  std::string content_;
  size_t start_, stop_;
};

class SuffixDecoder : public Decoder {
 public:
  explicit SuffixDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  void apply(std::vector<DecodedToken>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i].text = replaced(tokens[i].text, suffix_, i + 1 < tokens.size() ? " " : "");
  }
  void apply_alone(DecodedToken& token) const override { token.text = replaced(token.text, suffix_, " "); }

 private:
  std::string suffix_;
};

class SpacedDecoder : public Decoder {
 public:
  void apply(std::vector<DecodedToken>& tokens) const override {
    for (size_t i = 1; i < tokens.size(); ++i) apply_alone(tokens[i]);
  }
  void apply_alone(DecodedToken& token) const override { token.text.insert(0, 1, ' '); }
};

}  // namespace

DecoderPtr byte_level_decoder() { return std::make_unique<ByteLevelDecoder>(); }
DecoderPtr wordpiece_decoder(std::string prefix, bool clean_up) {
  return std::make_unique<WordPieceDecoder>(std::move(prefix), clean_up);
}
DecoderPtr space_mark_decoder(std::string mark, PrependScheme scheme) {
  return std::make_unique<SpaceMarkDecoder>(std::move(mark), scheme);
}
DecoderPtr replace_text_decoder(std::string from, std::string to) {
  return std::make_unique<ReplaceDecoder>(replace_text_normalizer(std::move(from), std::move(to)));
}
DecoderPtr replace_decoder(Regex pattern, std::string content) {
  return std::make_unique<ReplaceDecoder>(replace_normalizer(std::move(pattern), std::move(content)));
}
DecoderPtr byte_fallback_decoder() { return std::make_unique<ByteFallbackDecoder>(); }
DecoderPtr fuse_decoder() { return std::make_unique<FuseDecoder>(); }
DecoderPtr strip_decoder(std::string content, size_t start, size_t stop) {
  return std::make_unique<StripDecoder>(std::move(content), start, stop);
}
DecoderPtr suffix_decoder(std::string suffix) { return std::make_unique<SuffixDecoder>(std::move(suffix)); }
DecoderPtr spaced_decoder() { return std::make_unique<SpacedDecoder>(); }

}  // namespace liuli
