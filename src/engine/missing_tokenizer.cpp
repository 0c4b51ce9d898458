#include "engine/missing_tokenizer.h"

#include <fmt/format.h>

#include "liuli/error.h"

namespace liuli {
namespace {

class MissingTokenizer final : public Tokenizer {
 public:
  MissingTokenizer(std::string reason, int vocab_size)
      : Tokenizer({}), reason_(std::move(reason)), vocab_size_(vocab_size) {}

  std::vector<int> encode_spans(const std::vector<TextSpan>&) const override {
    throw Error(ErrorCode::not_found, reason_ + "; give token ids instead of text");
  }
  std::string token_bytes(int id) const override { return fmt::format("⟨{}⟩", id); }
  std::string decode(const std::vector<int>& ids) const override {
    std::string text;
    for (const int id : ids) text += token_bytes(id);
    return text;
  }
  int vocab_size() const override { return vocab_size_; }
  bool is_control(int) const override { return false; }

 private:
  std::string reason_;
  int vocab_size_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_missing_tokenizer(std::string reason, int vocab_size) {
  return std::make_unique<MissingTokenizer>(std::move(reason), vocab_size);
}

}  // namespace liuli
