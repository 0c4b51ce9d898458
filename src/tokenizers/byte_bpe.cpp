#include "tokenizers/byte_bpe.h"

#include <fmt/format.h>

#include "liuli/error.h"
#include "tokenizers/unicode.h"

namespace liuli {
namespace {

constexpr char32_t kAlphabetEnd = 0x100 + 68;

bool writes_itself(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

struct Alphabet {
  std::array<char32_t, 256> character;
  std::array<std::string, 256> text;      // the same as UTF-8
  std::array<int, kAlphabetEnd> byte_of;  // −1: not a character of the alphabet
};

const Alphabet& alphabet() {
  static const Alphabet table = [] {
    Alphabet a;
    a.byte_of.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const auto at = static_cast<size_t>(byte);
      a.character[at] = writes_itself(byte) ? static_cast<char32_t>(byte) : next++;
      a.byte_of[a.character[at]] = byte;
      append_utf8(a.text[at], a.character[at]);
    }
    return a;
  }();
  return table;
}

// A token outside the alphabet (an added token, say) is literal text, as a whole.
std::string bytes_of(const std::string& token) {
  std::string bytes;
  for (size_t at = 0; at < token.size();) {
    const Utf8Char c = read_utf8(token, at);
    const int byte = c.valid && c.code_point < kAlphabetEnd ? alphabet().byte_of[c.code_point] : -1;
    if (byte < 0) return token;
    bytes.push_back(static_cast<char>(byte));
    at += static_cast<size_t>(c.bytes);
  }
  return bytes;
}

uint64_t pair_key(int left, int right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

}  // namespace

char32_t byte_alphabet(uint8_t byte) { return alphabet().character[byte]; }

MergeTable::MergeTable(size_t merges) : shift_(60) {
  size_t size = 16;
  for (; size < 2 * merges; size *= 2) --shift_;
  slots_.resize(size);
}

size_t MergeTable::slot(uint64_t pair) const {
  // Fibonacci hashing keeps the high bits, which depend on both ids.
  size_t at = (pair ^ pair >> 29) * 0x9E3779B97F4A7C15u >> shift_;
  while (slots_[at].pair != pair && slots_[at].pair != UINT64_MAX) at = (at + 1) & (slots_.size() - 1);
  return at;
}

void MergeTable::add(int left, int right, PairMerge merge) {
  Slot& place = slots_[slot(pair_key(left, right))];
  if (place.pair == UINT64_MAX) place = {pair_key(left, right), merge};
}

PairMerge MergeTable::find(int left, int right) const { return slots_[slot(pair_key(left, right))].merge; }

ByteBpe::ByteBpe(TokenizerData data)
    : SplittingTokenizer(std::move(data)),
      rules_(pre_tokenizer(data_.pre)),
      index_(data_.tokens.size()),
      merges_(data_.merges.size()) {
  index_tokens();
  read_merges();
}

void ByteBpe::index_tokens() {
  for (size_t id = 0; id < data_.tokens.size(); ++id) {
    const TokenType t = type(id);
    if (t == TokenType::control || t == TokenType::user_defined)
      special_.add(data_.tokens[id], static_cast<int>(id), t == TokenType::control);
    if (t != TokenType::control) index_.add(data_.tokens[id], static_cast<int>(id));
  }
  // Not every vocabulary has all bytes: SmolLM2 lacks 21.
  for (size_t byte = 0; byte < 256; ++byte) byte_id_[byte] = index_.find(alphabet().text[byte]);
}

void ByteBpe::read_merges() {
  std::string joined;
  for (size_t rank = 0; rank < data_.merges.size(); ++rank) {
    const std::string_view merge = data_.merges[rank];
    const size_t space = merge.find(' ');
    int left = -1, right = -1, whole = -1;
    if (space != std::string_view::npos) {
      joined.assign(merge, 0, space).append(merge, space + 1);
      left = index_.find(merge.substr(0, space));
      right = index_.find(merge.substr(space + 1));
      whole = index_.find(joined);
    }
    if (left < 0 || right < 0 || whole < 0)
      throw Error(ErrorCode::corrupt_file, fmt::format("merge {} \"{}\" is not \"left right\" of two tokens "
                                                       "that make a token (found ids {}, {} and {})",
                                                       rank, merge, left, right, whole));
    merges_.add(left, right, {static_cast<uint32_t>(rank), whole});
  }
}

struct ByteBpe::Scratch {
  std::vector<MergeSymbol> symbols;
  std::vector<uint64_t> heap;
  std::string spelled;
};

void ByteBpe::encode_text(std::string_view text, std::vector<int>& ids) const {
  const std::string normal = rules_.nfc ? to_nfc(text) : std::string();
  Scratch scratch;
  for (const std::string_view piece : split_pieces(rules_, rules_.nfc ? std::string_view(normal) : text))
    encode_piece(piece, scratch, ids);
}

void ByteBpe::encode_piece(std::string_view piece, Scratch& s, std::vector<int>& ids) const {
  // Llama 3 has tokens that its merges cannot reach.
  if (rules_.ignore_merges && piece.size() <= index_.longest()) {
    s.spelled.clear();
    for (const char c : piece) s.spelled += alphabet().text[static_cast<uint8_t>(c)];
    const int id = index_.find(s.spelled);
    if (id >= 0) return ids.push_back(id);
  }
  // Bytes without a token are dropped before merging, as Hugging Face's BPE does when there is no unknown
  // token.
  s.symbols.clear();
  for (size_t at = 0; at < piece.size(); ++at) {
    const int id = byte_id_[static_cast<uint8_t>(piece[at])];
    const auto n = static_cast<int>(s.symbols.size());
    if (id >= 0) s.symbols.push_back({id, static_cast<uint32_t>(at), 1, n - 1, n + 1});
  }
  if (s.symbols.empty()) return;
  s.symbols.back().next = -1;
  merge_pairs(s.symbols, s.heap, [&](const MergeSymbol& left, const MergeSymbol& right) {
    return merges_.find(left.id, right.id);
  });
  for (int at = 0; at >= 0; at = s.symbols[static_cast<size_t>(at)].next)
    ids.push_back(s.symbols[static_cast<size_t>(at)].id);
}

std::string ByteBpe::token_bytes(int id) const {
  if (!known(id)) return "";
  const auto at = static_cast<size_t>(id);
  switch (type(at)) {
    case TokenType::unused:
      return "";
    case TokenType::control:
    case TokenType::user_defined:
    case TokenType::unknown:
      return data_.tokens[at];
    default:
      return bytes_of(data_.tokens[at]);
  }
}

std::string ByteBpe::decode(const std::vector<int>& ids) const {
  std::string bytes;
  for (const int id : ids) bytes += token_bytes(id);
  return replace_invalid_utf8(bytes);
}

}  // namespace liuli
