#include "tokenizers/bpe.h"

#include <fmt/format.h>

#include <functional>

#include "liuli/error.h"
#include "tokenizers/byte_alphabet.h"
#include "tokenizers/unicode.h"

namespace liuli {
namespace {

uint64_t pair_key(int left, int right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// Below this many symbols looking at all pairs beats keeping a heap of them.
constexpr size_t kShortPiece = 24;

}  // namespace

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
  slots_[slot(pair_key(left, right))] = {pair_key(left, right), merge};
}

PairMerge MergeTable::find(int left, int right) const { return slots_[slot(pair_key(left, right))].merge; }

Bpe::Bpe(const TokenizerData& vocabulary, const MergeList& merges, BpeSettings settings)
    : settings_(std::move(settings)), index_(vocabulary.tokens.size()), merges_(merges.size()) {
  index_tokens(vocabulary);
  add_merges(vocabulary, merges);
}

Bpe::Bpe(const TokenizerData& vocabulary, BpeSettings settings)
    : settings_(std::move(settings)),
      index_(vocabulary.tokens.size()),
      merges_(3 * vocabulary.tokens.size()) {
  index_tokens(vocabulary);
  MergeList splits;
  for (const std::string& token : vocabulary.tokens) {
    if (index_.find(token) < 0) continue;
    for (size_t at = 0; at < token.size();) {
      at += static_cast<size_t>(read_utf8(token, at).bytes);
      const std::string_view left = std::string_view(token).substr(0, at),
                             right = std::string_view(token).substr(at);
      if (!right.empty() && index_.find(left) >= 0 && index_.find(right) >= 0)
        splits.emplace_back(left, right);
    }
  }
  merges_ = MergeTable(splits.size());
  add_merges(vocabulary, splits);
}

void Bpe::index_tokens(const TokenizerData& vocabulary) {
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (vocabulary.types.empty() || vocabulary.types[id] != TokenType::control)
      index_.add(vocabulary.tokens[id], static_cast<int>(id));
  // Not every vocabulary has all bytes: SmolLM2 lacks 21.
  for (size_t byte = 0; byte < 256; ++byte)
    byte_id_[byte] = index_.find(settings_.byte_level ? byte_character(static_cast<uint8_t>(byte))
                                                      : fmt::format("<0x{:02X}>", byte));
}

void Bpe::add_merges(const TokenizerData& vocabulary, const MergeList& merges) {
  // Merges may speak of control tokens, which only the whole vocabulary knows; such merges never happen.
  TokenIndex all(vocabulary.tokens.size());
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    all.add(vocabulary.tokens[id], static_cast<int>(id));
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const size_t skip = right.starts_with(settings_.prefix) ? settings_.prefix.size() : 0;
    joined.assign(left).append(right, skip);
    const int a = all.find(left), b = all.find(right), whole = all.find(joined);
    if (a < 0 || b < 0 || whole < 0)
      throw Error(ErrorCode::corrupt_file,
                  fmt::format("merge {} \"{} {}\" is not \"left right\" of two tokens "
                              "that make a token (found ids {}, {} and {})",
                              rank, left, right, a, b, whole));
    if (index_.find(joined) == whole) merges_.add(a, b, {static_cast<uint32_t>(rank), whole});
  }
}

// What one call of encode keeps: room for symbols, and the ids of pieces it has seen, since texts repeat
// their words (the cache makes English three times as fast).
struct Bpe::Scratch {
  struct Known {
    std::string_view piece;
    uint32_t begin = 0, count = 0;  // in known_ids
  };
  std::vector<MergeSymbol> symbols;
  std::vector<uint64_t> heap;
  std::string spelled;
  std::vector<Known> cache;
  std::vector<int> known_ids;
};

void Bpe::encode(const std::vector<std::string_view>& pieces, std::vector<int>& ids) const {
  constexpr size_t kCacheSlots = 8192, kWorthACache = 64, kLongestCached = 64;
  Scratch scratch;
  if (pieces.size() >= kWorthACache) scratch.cache.resize(kCacheSlots);
  for (const std::string_view piece : pieces) {
    if (scratch.cache.empty() || piece.size() > kLongestCached) {
      encode_piece(piece, scratch, ids);
      continue;
    }
    Scratch::Known& known = scratch.cache[std::hash<std::string_view>()(piece) % kCacheSlots];
    if (known.piece != piece) {
      const size_t before = ids.size();
      encode_piece(piece, scratch, ids);
      known = {piece, static_cast<uint32_t>(scratch.known_ids.size()),
               static_cast<uint32_t>(ids.size() - before)};
      scratch.known_ids.insert(scratch.known_ids.end(), ids.begin() + static_cast<std::ptrdiff_t>(before),
                               ids.end());
    } else {
      const auto first = scratch.known_ids.begin() + known.begin;
      ids.insert(ids.end(), first, first + known.count);
    }
  }
}

// The id of a piece that is a token as a whole, or −1. Llama 3 has tokens that its merges cannot reach.
int Bpe::whole_token(std::string_view piece, Scratch& s) const {
  if (piece.size() > index_.longest()) return -1;
  if (!settings_.byte_level) return index_.find(piece);
  s.spelled.clear();
  for (const char c : piece) s.spelled += byte_character(static_cast<uint8_t>(c));
  return index_.find(s.spelled);
}

namespace {

void append_symbol(std::vector<MergeSymbol>& symbols, int id, size_t at, size_t bytes) {
  const auto n = static_cast<int>(symbols.size());
  symbols.push_back({id, static_cast<uint32_t>(at), static_cast<uint32_t>(bytes), n - 1, n + 1});
}

// Lowest order first, then leftmost: by looking at all pairs each time.
template <class FindPair>
void merge_short(std::vector<MergeSymbol>& symbols, FindPair find_pair) {
  size_t n = symbols.size();
  const auto refresh = [&](size_t at) {
    symbols[at].pair = at + 1 < n ? find_pair(symbols[at], symbols[at + 1]) : PairMerge{};
  };
  for (size_t at = 0; at < n; ++at) refresh(at);
  while (n > 1) {
    size_t best = 0;
    for (size_t at = 1; at + 1 < n; ++at)
      if (symbols[at].pair.order < symbols[best].pair.order) best = at;
    if (symbols[best].pair.order == PairMerge::kNever) break;
    symbols[best].id = symbols[best].pair.id;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    --n;
    refresh(best);
    if (best > 0) refresh(best - 1);
  }
}

}  // namespace

void Bpe::start_symbols(std::string_view piece, Scratch& s) const {
  s.symbols.clear();
  if (!settings_.byte_level) return start_characters(piece, s);
  for (size_t at = 0; at < piece.size(); ++at) {
    const int id = byte_id_[static_cast<uint8_t>(piece[at])];
    // Without an unknown token bytes that have none are dropped before merging.
    if (id >= 0 || settings_.unknown >= 0) append_symbol(s.symbols, id >= 0 ? id : settings_.unknown, at, 1);
  }
}

void Bpe::start_characters(std::string_view piece, Scratch& s) const {
  bool after_unknown = false;
  for (size_t at = 0, bytes = 0; at < piece.size(); at += bytes) {
    bytes = static_cast<size_t>(read_utf8(piece, at).bytes);
    std::string_view character = piece.substr(at, bytes);
    const bool first = at == 0, last = at + bytes == piece.size();
    if ((!first && !settings_.prefix.empty()) || (last && !settings_.suffix.empty())) {
      s.spelled.assign(first ? "" : settings_.prefix).append(character).append(last ? settings_.suffix : "");
      character = s.spelled;
    }
    const int id = index_.find(character);
    if (id >= 0) {
      append_symbol(s.symbols, id, at, bytes);
    } else if (settings_.byte_fallback && append_bytes(character, s)) {
    } else if (settings_.unknown >= 0) {
      if (!(settings_.fuse_unknown && after_unknown)) append_symbol(s.symbols, settings_.unknown, at, bytes);
      after_unknown = true;
      continue;
    }
    after_unknown = false;
  }
}

bool Bpe::append_bytes(std::string_view character, Scratch& s) const {
  for (const char c : character)
    if (byte_id_[static_cast<uint8_t>(c)] < 0) return false;
  for (const char c : character) append_symbol(s.symbols, byte_id_[static_cast<uint8_t>(c)], 0, 1);
  return true;
}

void Bpe::encode_piece(std::string_view piece, Scratch& s, std::vector<int>& ids) const {
  if (settings_.ignore_merges) {
    const int id = whole_token(piece, s);
    if (id >= 0) return ids.push_back(id);
  }
  start_symbols(piece, s);
  if (s.symbols.empty()) return;
  s.symbols.back().next = -1;
  const auto find_pair = [&](const MergeSymbol& left, const MergeSymbol& right) {
    return merges_.find(left.id, right.id);
  };
  if (s.symbols.size() <= kShortPiece) {
    merge_short(s.symbols, find_pair);
    for (const MergeSymbol& symbol : s.symbols) ids.push_back(symbol.id);
    return;
  }
  merge_pairs(s.symbols, s.heap, find_pair);
  for (int at = 0; at >= 0; at = s.symbols[static_cast<size_t>(at)].next)
    ids.push_back(s.symbols[static_cast<size_t>(at)].id);
}

}  // namespace liuli
