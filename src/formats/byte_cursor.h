// The one reader of foreign bytes: every access is checked against what is left.
#pragma once
#include <fmt/core.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "liuli/error.h"

namespace liuli {

/// A name from a file, fit for a one-line message: in quotes, unprintable bytes as \xNN, cut after 80 bytes.
std::string quoted_name(std::string_view name);

/// Walks over bytes it does not own, little-endian. Messages name the path, the place (what is being read)
/// and the byte.
class ByteCursor {
 public:
  /// `path` must outlive the cursor.
  ByteCursor(const std::string& path, const uint8_t* data, size_t size)
      : path_(path), data_(data), size_(size) {}

  size_t position() const { return position_; }
  size_t remaining() const { return size_ - position_; }

  /// Says what is read from here on, for messages: `kind` is static text, `name` lives as long as the bytes.
  void enter(const char* kind, std::string_view name = {}) {
    kind_ = kind;
    name_ = name;
  }

  /// The next n bytes. `what` is what they should have been.
  const uint8_t* take(uint64_t n, const char* what) {
    if (n > remaining()) fail("{} needs {} bytes, {} are left", what, n, remaining());
    const uint8_t* bytes = data_ + position_;
    position_ += n;
    return bytes;
  }

  /// `count` elements of `size` bytes; the product may not fit in 64 bits.
  const uint8_t* take_array(uint64_t count, size_t size, const char* what) {
    if (count > remaining() / size)
      fail("{} needs {} × {} bytes, {} are left", what, count, size, remaining());
    return take(count * size, what);
  }

  template <class T>
  T read(const char* what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what), sizeof(T));
    return value;
  }

  /// A u64 length and that many bytes, at most `limit`.
  std::string_view string(const char* what, uint64_t limit) {
    const auto length = read<uint64_t>("a string length");
    if (length > limit) fail("{} is {} bytes long, the limit is {}", what, length, limit);
    return {reinterpret_cast<const char*>(take(length, what)), static_cast<size_t>(length)};
  }

  template <class... T>
  [[noreturn]] void fail(fmt::format_string<T...> format, T&&... values) const {
    fail_as(ErrorCode::corrupt_file, fmt::format(format, std::forward<T>(values)...));
  }
  [[noreturn]] void fail_as(ErrorCode code, const std::string& reason) const;

 private:
  const std::string& path_;
  const uint8_t* data_;
  size_t size_;
  size_t position_ = 0;
  const char* kind_ = "file";
  std::string_view name_;
};

}  // namespace liuli
