// Tokens in memory or in a file of them.
//
//   Liuli's own: "LIULITOK", u32 version 1, u32 bytes per token (2 or 4), u64 number of tokens, then the tokens;
//   NumPy's .npy: one dimension of u2, u4, i4 or i8. All little endian.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "formats/mapped_file.h"

namespace liuli {

/// A long run of token ids. A file stays mapped: only what is read takes memory.
class TokenStream {
 public:
  TokenStream() = default;
  explicit TokenStream(std::vector<int> tokens);
  /// Errors: not_found, io_error, corrupt_file (neither format, or a size that does not fit), unsupported (.npy of
  /// another kind).
  static TokenStream open(const std::string& path);
  static bool is_token_file(const std::string& path);  ///< by its name: .tokens or .npy

  int64_t size() const { return count_; }
  int at(int64_t i) const;
  std::vector<int> read(int64_t begin, int64_t n) const;
  TokenStream part(int64_t begin, int64_t n) const;
  /// FNV-1a over all ids: whether a run goes on with the data it began with.
  uint64_t fingerprint() const;

 private:
  FileBytes bytes_;
  const uint8_t* first_ = nullptr;
  int width_ = 4;  ///< bytes per token
  int64_t count_ = 0;
};

/// The file appears whole or not at all. Errors: io_error.
void write_token_file(const std::string& path, const std::vector<int>& tokens);

}  // namespace liuli
