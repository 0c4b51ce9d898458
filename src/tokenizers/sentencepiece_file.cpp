#include "tokenizers/sentencepiece_file.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "liuli/error.h"
#include "tokenizers/base64.h"
#include "tokenizers/byte_alphabet.h"
#include "tokenizers/unicode.h"

namespace liuli {
namespace {

[[noreturn]] void corrupt(const std::string& what) {
  throw Error(ErrorCode::corrupt_file, "tokenizer.model: " + what);
}

// Walks the fields of one message of a protocol buffer.
class Message {
 public:
  explicit Message(std::string_view bytes) : bytes_(bytes) {}

  bool next() {
    if (at_ >= bytes_.size()) return false;
    const uint64_t key = varint();
    field = key >> 3;
    number = 0;
    content = {};
    switch (key & 7) {
      case 0:
        number = varint();
        return true;
      case 1:
        number = fixed(8);
        return true;
      case 2:
        content = take(varint());
        return true;
      case 5:
        number = fixed(4);
        return true;
      default:
        corrupt(fmt::format("field {} has the wire type {} at byte {}", field, key & 7, at_));
    }
  }

  uint64_t field = 0;
  uint64_t number = 0;
  std::string_view content;

 private:
  std::string_view take(uint64_t n) {
    if (n > bytes_.size() - at_)
      corrupt(fmt::format("field {} of {} bytes, {} are left", field, n, bytes_.size() - at_));
    const std::string_view taken = bytes_.substr(at_, n);
    at_ += n;
    return taken;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    corrupt(fmt::format("a number of more than 64 bits at byte {}", at_));
  }
  uint64_t fixed(size_t n) {
    uint64_t value = 0;
    const std::string_view bytes = take(n);
    for (size_t i = 0; i < n; ++i) value |= uint64_t{static_cast<uint8_t>(bytes[i])} << 8 * i;
    return value;
  }

  std::string_view bytes_;
  size_t at_ = 0;
};

void read_piece(std::string_view bytes, TokenizerData& data) {
  Message message(bytes);
  std::string piece;
  float score = 0;
  uint64_t type = 1;
  while (message.next()) {
    if (message.field == 1) piece = message.content;
    if (message.field == 2) score = std::bit_cast<float>(static_cast<uint32_t>(message.number));
    if (message.field == 3) type = message.number;
  }
  if (type < 1 || type > 6) corrupt(fmt::format("piece {} has the type {}", data.tokens.size(), type));
  if (!valid_utf8(piece)) corrupt(fmt::format("piece {} is no UTF-8", data.tokens.size()));
  data.tokens.push_back(std::move(piece));
  data.scores.push_back(score);
  data.types.push_back(static_cast<TokenType>(type));
}

void read_trainer(std::string_view bytes, TokenizerData& data) {
  Message message(bytes);
  uint64_t model_type = 1;
  data.unknown = 0;
  data.bos = 1;
  data.eos = 2;
  while (message.next()) {
    const auto id = static_cast<int>(static_cast<int64_t>(message.number));
    if (message.field == 3) model_type = message.number;
    if (message.field == 40) data.unknown = id;
    if (message.field == 41) data.bos = id;
    if (message.field == 42) data.eos = id;
    if (message.field == 43) data.padding = id;
  }
  if (model_type != 1 && model_type != 2)
    throw Error(ErrorCode::unsupported,
                fmt::format("tokenizer.model: model type {}; known are 1 (Unigram) and 2 (BPE)", model_type));
  data.model = model_type == 1 ? "t5" : "llama";
}

void read_normalizer_spec(std::string_view bytes, TokenizerData& data) {
  Message message(bytes);
  while (message.next()) {
    if (message.field == 2) data.precompiled_charsmap.assign(message.content.begin(), message.content.end());
    if (message.field == 3) data.add_space_prefix = message.number != 0;
    if (message.field == 4) data.remove_extra_whitespaces = message.number != 0;
    if (message.field == 5 && message.number == 0)
      throw Error(ErrorCode::unsupported, "tokenizer.model: escape_whitespaces is off");
  }
}

}  // namespace

TokenizerData read_sentencepiece_file(std::string_view bytes) {
  TokenizerData data;
  data.model = "t5";
  data.add_space_prefix = true;  // the defaults of the format
  data.remove_extra_whitespaces = true;
  Message message(bytes);
  while (message.next()) {
    if (message.field == 1) read_piece(message.content, data);
    if (message.field == 2) read_trainer(message.content, data);
    if (message.field == 3) read_normalizer_spec(message.content, data);
  }
  if (data.tokens.empty()) corrupt("no pieces");
  // Ids that name nothing: the trainer's defaults, in a vocabulary without such a piece.
  for (int* id : {&data.bos, &data.eos, &data.unknown, &data.padding})
    if (*id < 0 || static_cast<size_t>(*id) >= data.tokens.size()) *id = -1;
  return data;
}

bool looks_like_tiktoken(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  const size_t space = line.find(' ');
  return space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
         line.substr(space + 1).find_first_not_of("0123456789") == std::string_view::npos &&
         from_base64(line.substr(0, space)).has_value();
}

std::vector<std::string> read_tiktoken_file(std::string_view bytes) {
  std::vector<std::string> tokens;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    if (line.empty()) continue;
    const size_t space = line.find(' ');
    const auto raw = from_base64(line.substr(0, space));
    if (space == std::string_view::npos || !raw || line.substr(space + 1) != std::to_string(tokens.size()))
      corrupt(fmt::format("line {} is not \"base64 {}\"", tokens.size() + 1, tokens.size()));
    tokens.emplace_back();
    for (const uint8_t byte : *raw) tokens.back() += byte_character(byte);
  }
  return tokens;
}

}  // namespace liuli
