#include "train/token_file.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "core/output_file.h"
#include "liuli/error.h"

namespace liuli {
namespace {

constexpr std::string_view kMagic = "LIULITOK", kNpyMagic = "\x93NUMPY";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 24;

[[noreturn]] void corrupt(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::corrupt_file, fmt::format("{}: {}", path, what));
}

template <class T>
T read_at(const FileBytes& file, size_t at) {
  T value;
  std::memcpy(&value, file.data + at, sizeof value);
  return value;
}

// Where a file's tokens lie.
struct Layout {
  size_t offset = 0;
  int width = 0;
  int64_t count = 0;
};

Layout own_layout(const std::string& path, const FileBytes& file) {
  if (file.size < kHeaderBytes)
    corrupt(path, fmt::format("has {} bytes, its header {}", file.size, kHeaderBytes));
  const auto version = read_at<uint32_t>(file, 8), width = read_at<uint32_t>(file, 12);
  const auto count = read_at<uint64_t>(file, 16);
  if (version != kVersion) corrupt(path, fmt::format("has version {}, expected {}", version, kVersion));
  if (width != 2 && width != 4) corrupt(path, fmt::format("has {} bytes per token, expected 2 or 4", width));
  if (count != (file.size - kHeaderBytes) / width || (file.size - kHeaderBytes) % width != 0)
    corrupt(path, fmt::format("announces {} tokens of {} bytes, {} bytes follow", count, width,
                              file.size - kHeaderBytes));
  return {kHeaderBytes, static_cast<int>(width), static_cast<int64_t>(count)};
}

// The value of a key in the header's dictionary, up to the comma that ends it.
std::string_view npy_value(std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) return "";
  const size_t begin = header.find_first_not_of(" :'", at + key.size());
  return begin == std::string_view::npos ? ""
                                         : header.substr(begin, header.find_first_of("',)}", begin) - begin);
}

Layout npy_layout(const std::string& path, const FileBytes& file) {
  if (file.size < 12) corrupt(path, "is too short for a .npy file");
  const bool wide = file.data[6] >= 2;
  const size_t start = wide ? 12 : 10;
  const size_t length = wide ? read_at<uint32_t>(file, 8) : read_at<uint16_t>(file, 8);
  if (length > file.size - start) corrupt(path, fmt::format("has a header of {} bytes and no more", length));
  const std::string_view header(reinterpret_cast<const char*>(file.data) + start, length);
  const std::string type(npy_value(header, "'descr'"));
  int width = 0;
  for (const char* known : {"<u2", "<u4", "<i4", "<i8"})
    if (type == known) width = known[2] - '0';
  const size_t paren = header.find('('), close = header.find(')');
  const std::string shape(
      paren < close && close != std::string_view::npos ? header.substr(paren + 1, close - paren - 1) : "");
  if (width == 0 || shape.find(',') != shape.find_last_of(','))
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: holds \"{}\" of shape ({}), expected one dimension of u2, u4, i4 or i8",
                            path, type, shape));
  const size_t bytes = file.size - start - length;
  const auto count = static_cast<int64_t>(bytes / static_cast<size_t>(width));
  if (shape.substr(0, shape.find(',')) != std::to_string(count))
    corrupt(path, fmt::format("has shape ({}), {} bytes of {} follow", shape, bytes, type));
  return {start + length, width, count};
}

std::string_view first_bytes(const FileBytes& file, size_t n) {
  return {reinterpret_cast<const char*>(file.data), std::min(n, file.size)};
}

}  // namespace

TokenStream::TokenStream(std::vector<int> tokens) : count_(static_cast<int64_t>(tokens.size())) {
  auto owner = std::make_shared<const std::vector<int>>(std::move(tokens));
  first_ = reinterpret_cast<const uint8_t*>(owner->data());
  bytes_ = {first_, owner->size() * sizeof(int), owner, false};
}

bool TokenStream::is_token_file(const std::string& path) {
  return path.ends_with(".tokens") || path.ends_with(".npy");
}

TokenStream TokenStream::open(const std::string& path) {
  TokenStream stream;
  stream.bytes_ = map_file(path);
  Layout layout;
  if (first_bytes(stream.bytes_, kMagic.size()) == kMagic)
    layout = own_layout(path, stream.bytes_);
  else if (first_bytes(stream.bytes_, kNpyMagic.size()) == kNpyMagic)
    layout = npy_layout(path, stream.bytes_);
  else
    corrupt(path, "begins neither as a file of tokens (LIULITOK) nor as a .npy file");
  stream.first_ = stream.bytes_.data + layout.offset;
  stream.width_ = layout.width;
  stream.count_ = layout.count;
  return stream;
}

int TokenStream::at(int64_t i) const {
  const uint8_t* from = first_ + i * width_;
  if (width_ == 2) {
    uint16_t value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  int value;  // of eight bytes the lower four: no vocabulary needs more
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::vector<int> TokenStream::read(int64_t begin, int64_t n) const {
  std::vector<int> tokens(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; i++) tokens[static_cast<size_t>(i)] = at(begin + i);
  return tokens;
}

TokenStream TokenStream::part(int64_t begin, int64_t n) const {
  TokenStream stream = *this;
  stream.first_ += begin * width_;
  stream.count_ = n;
  return stream;
}

uint64_t TokenStream::fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int64_t i = 0; i < count_; i++)
    hash = (hash ^ static_cast<uint64_t>(static_cast<uint32_t>(at(i)))) * 0x100000001b3u;
  return hash;
}

void write_token_file(const std::string& path, const std::vector<int>& tokens) {
  const bool wide = std::any_of(tokens.begin(), tokens.end(), [](int id) { return id > 0xFFFF; });
  OutputFile file(path);
  file.write(kMagic);
  const uint32_t version = kVersion, width = wide ? 4 : 2;
  const uint64_t count = tokens.size();
  file.write(&version, sizeof version);
  file.write(&width, sizeof width);
  file.write(&count, sizeof count);
  for (const int id : tokens) file.write(&id, width);
  file.commit();
}

}  // namespace liuli
