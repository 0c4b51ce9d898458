// A string of a template program that remembers which of its bytes came from the user.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace liuli::jinja {

/// UTF-8 text plus the sorted, disjoint, non-touching byte ranges that came from the user.
///
/// Every operation of the language is built from append and slice, so the marks follow the bytes through
/// concatenation, trimming, splitting, replacing and joining without each operation having to think of them.
class Text {
 public:
  struct Range {
    size_t begin, end;
  };

  Text() = default;
  Text(std::string bytes, bool from_user);

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  bool from_user() const { return !user_.empty(); }  ///< any byte of it
  const std::vector<Range>& user_ranges() const { return user_; }
  /// Bytes this text occupies, marks included: what the memory bound counts.
  size_t footprint() const { return bytes_.size() + user_.size() * sizeof(Range); }

  void append(std::string_view bytes, bool from_user);
  void append(const Text& other) { append_slice(other, 0, other.size()); }
  void append_slice(const Text& other, size_t begin, size_t end);
  Text slice(size_t begin, size_t end) const;
  void reserve(size_t bytes) { bytes_.reserve(bytes); }

 private:
  void mark(size_t begin, size_t end);

  std::string bytes_;
  std::vector<Range> user_;
};

}  // namespace liuli::jinja
