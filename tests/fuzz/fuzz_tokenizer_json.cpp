// Fuzz target of the tokenizer files: bytes that begin with { are a tokenizer.json, others a tokenizer.model. What
// loads must encode and decode a text. An Error is a fine answer.
#include <cstddef>
#include <cstdint>
#include <string>

#include "liuli/error.h"
#include "tokenizers/hugging_face.h"

namespace {

constexpr const char* kText =
    "Hello  the world's 12345 caf\u00E9 cafe\u0301 你好。 <s> a<x>b [CLS] \U0001F469\u200D\U0001F469 "
    "hello-lo\r\n\t x";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::string name = bytes.starts_with('{') ? "tokenizer.json" : "tokenizer.model";
  const liuli::CompanionFiles files = [&](std::string_view wanted) -> std::optional<std::string> {
    if (wanted == name) return bytes;
    return std::nullopt;
  };
  try {
    const liuli::HuggingFaceText text = liuli::read_hugging_face_text(files, "");
    const liuli::Tokenizer& tokenizer = *text.tokenizer;
    (void)tokenizer.decode(tokenizer.encode(kText, true, true));
    const std::vector<int> ids = tokenizer.encode_spans({{"<s>", false}, {kText, true}, {"</s>", false}});
    liuli::StreamDecoder stream(tokenizer);
    for (const int id : ids) (void)stream.push(id);
    (void)stream.finish();
  } catch (const liuli::Error&) {
    // The reader's way to say no.
  }
  return 0;
}
