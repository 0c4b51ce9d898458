#include "formats/npz.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "formats/mapped_file.h"
#include "liuli/error.h"

namespace liuli {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;
constexpr int64_t kLocalBytes = 30 + 20;  // with the extra field of 64-bit sizes, without the name
constexpr size_t kEndBytes = 22;

// Numbers of a ZIP file, lowest byte first.
class Bytes {
 public:
  Bytes& u16(uint64_t v) { return number(v, 2); }
  Bytes& u32(uint64_t v) { return number(v, 4); }
  Bytes& u64(uint64_t v) { return number(v, 8); }
  Bytes& text(const std::string& s) {
    bytes_ += s;
    return *this;
  }
  const std::string& get() const { return bytes_; }

 private:
  Bytes& number(uint64_t v, int n) {
    for (int i = 0; i < n; i++) bytes_ += static_cast<char>(v >> (8 * i) & 255);
    return *this;
  }
  std::string bytes_;
};

// CRC-32 of IEEE 802.3, a byte at a time.
uint32_t crc32(uint32_t crc, const uint8_t* data, size_t n) {
  static const auto table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; i++) {
      t[i] = i;
      for (int bit = 0; bit < 8; bit++) t[i] = t[i] >> 1 ^ (t[i] & 1 ? 0xedb88320u : 0);
    }
    return t;
  }();
  crc = ~crc;
  for (size_t i = 0; i < n; i++) crc = crc >> 8 ^ table[(crc ^ data[i]) & 255];
  return ~crc;
}

// Version 4.5 (64-bit sizes), names in UTF-8, stored, 1 January 1980: the same file for the same values.
constexpr uint64_t kVersion = 45, kUtf8 = 0x800, kStored = 0, kTime = 0, kDate = 0x21, kSeeExtra = 0xffffffff;

// What an entry's own header and its line in the directory have in common: how it is stored, its sizes in the extra field.
void put_common(Bytes& to, const std::string& name, uint32_t crc, uint64_t extra_bytes) {
  to.u16(kVersion).u16(kUtf8).u16(kStored).u16(kTime).u16(kDate).u32(crc).u32(kSeeExtra).u32(kSeeExtra);
  to.u16(name.size()).u16(extra_bytes);
}

}  // namespace

int64_t NpzWriter::Entry::data_at() const {
  return at + kLocalBytes + static_cast<int64_t>(file_name.size() + header.size());
}

NpzWriter::NpzWriter(const std::string& path, const std::vector<Spec>& specs,
                     const std::map<std::string, std::string>& metadata)
    : file_(path) {
  std::set<std::string> names = {"__metadata__"};
  for (const Spec& spec : specs) {
    if (!names.insert(spec.name).second)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: array \"{}\" is there twice", path, spec.name));
    int64_t n = 1;
    for (const int64_t d : spec.shape) n *= d;
    add_entry(spec.name, npy_header(spec.shape), n * static_cast<int64_t>(sizeof(float)));
  }
  if (metadata.empty()) return;
  const std::string json = nlohmann::json(metadata).dump();
  add_entry("__metadata__", npy_header({}, fmt::format("|S{}", json.size())),
            static_cast<int64_t>(json.size()));
  file_.write_at(entries_.back().data_at(), json.data(), json.size());
}

void NpzWriter::add_entry(const std::string& name, const std::string& header, int64_t data_bytes) {
  Entry entry{name + ".npy", header, end_, data_bytes / static_cast<int64_t>(sizeof(float)), 0};
  entry.bytes = static_cast<int64_t>(header.size()) + data_bytes;
  end_ = entry.data_at() + data_bytes;
  file_.write_at(entry.data_at() - static_cast<int64_t>(header.size()), header.data(), header.size());
  entries_.push_back(std::move(entry));
}

void NpzWriter::write_at(size_t array, int64_t first, const float* values, int64_t n) {
  const Entry& entry = entries_.at(array);
  if (first < 0 || first + n > entry.n_values)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} has {} values, {} are being written at {}", file_.path(), entry.file_name,
                            entry.n_values, n, first));
  const auto size = static_cast<int64_t>(sizeof(float));
  file_.write_at(entry.data_at() + first * size, values, static_cast<size_t>(n * size));
}

uint32_t NpzWriter::checksum(const Entry& entry) {
  std::vector<uint8_t> buffer(size_t{1} << 20);
  uint32_t crc = 0;
  for (int64_t at = entry.at + kLocalBytes + static_cast<int64_t>(entry.file_name.size()), left = entry.bytes;
       left > 0;) {
    const auto n = static_cast<size_t>(std::min<int64_t>(left, static_cast<int64_t>(buffer.size())));
    file_.read_at(at, buffer.data(), n);
    crc = crc32(crc, buffer.data(), n);
    at += static_cast<int64_t>(n);
    left -= static_cast<int64_t>(n);
  }
  return crc;
}

void NpzWriter::finish() {
  file_.set_size(end_);
  Bytes directory;
  for (const Entry& entry : entries_) {
    const uint32_t crc = checksum(entry);
    const auto bytes = static_cast<uint64_t>(entry.bytes);
    Bytes local;
    put_common(local.u32(kLocal), entry.file_name, crc, 20);
    local.text(entry.file_name).u16(1).u16(16).u64(bytes).u64(bytes);
    file_.write_at(entry.at, local.get().data(), local.get().size());
    put_common(directory.u32(kCentral).u16(kVersion), entry.file_name, crc, 28);
    directory.u16(0).u16(0).u16(0).u32(0).u32(kSeeExtra).text(entry.file_name);
    directory.u16(1).u16(24).u64(bytes).u64(bytes).u64(static_cast<uint64_t>(entry.at));
  }
  const uint64_t at = static_cast<uint64_t>(end_), size = directory.get().size(), n = entries_.size();
  directory.u32(kEnd64).u64(44).u16(kVersion).u16(kVersion).u32(0).u32(0).u64(n).u64(n).u64(size).u64(at);
  directory.u32(kLocator64).u32(0).u64(at + size).u32(1);
  directory.u32(kEnd).u16(0).u16(0).u16(0xffff).u16(0xffff).u32(kSeeExtra).u32(kSeeExtra).u16(0);
  file_.write_at(end_, directory.get().data(), directory.get().size());
  file_.commit();
}

namespace {

// A ZIP file's directory; every number is checked against the file's size before it is followed.
class ZipReader {
 public:
  ZipReader(const std::string& path, const uint8_t* data, size_t size)
      : path_(path), data_(data), size_(size) {}

  std::vector<NpyArray> arrays() {
    size_t end = size_ < kEndBytes ? size_ : size_ - kEndBytes;
    while (end > 0 && end + kEndBytes <= size_ && number(end, 4) != kEnd) end--;
    if (size_ < kEndBytes || number(end, 4) != kEnd) corrupt("it is no ZIP archive");
    uint64_t n = number(end + 10, 2), at = number(end + 16, 4);
    if (n == 0xffff || at == kSeeExtra) {
      const size_t wide = end >= 20 ? number(end - 12, 8) : size_;
      if (wide > size_ || size_ - wide < 56 || number(wide, 4) != kEnd64)
        corrupt("its 64-bit directory is missing");
      n = number(wide + 32, 8);
      at = number(wide + 48, 8);
    }
    std::vector<NpyArray> list;
    for (uint64_t i = 0; i < n; i++) at = entry(at, list);
    return list;
  }

 private:
  [[noreturn]] void corrupt(const std::string& what) const {
    throw Error(ErrorCode::corrupt_file, fmt::format("{}: {}", path_, what));
  }
  uint64_t number(uint64_t at, size_t bytes) const {
    if (at > size_ || bytes > size_ - at) corrupt(fmt::format("it ends before byte {}", at));
    uint64_t v = 0;
    for (size_t i = bytes; i-- > 0;) v = v << 8 | data_[at + i];
    return v;
  }

  // Sizes and offset that did not fit into 32 bits stand in the extra field, in this order.
  void widen(uint64_t extra, uint64_t extra_bytes, std::array<uint64_t*, 3> fields) const {
    for (uint64_t at = extra; at + 4 <= extra + extra_bytes; at += 4 + number(at + 2, 2)) {
      if (number(at, 2) != 1) continue;
      uint64_t next = at + 4;
      for (uint64_t* field : fields)
        if (*field == kSeeExtra) *field = number(next, 8), next += 8;
    }
  }

  uint64_t entry(uint64_t at, std::vector<NpyArray>& list) const {
    if (number(at, 4) != kCentral) corrupt(fmt::format("its directory breaks off at byte {}", at));
    const uint64_t method = number(at + 10, 2), name_bytes = number(at + 28, 2),
                   extra_bytes = number(at + 30, 2), comment_bytes = number(at + 32, 2);
    uint64_t stored = number(at + 20, 4), plain = number(at + 24, 4), local = number(at + 42, 4);
    const uint64_t next = at + 46 + name_bytes + extra_bytes + comment_bytes;
    number(next - 1, 1);
    widen(at + 46 + name_bytes, extra_bytes, {&plain, &stored, &local});
    std::string name(reinterpret_cast<const char*>(data_) + at + 46, name_bytes);
    if (!name.ends_with(".npy")) return next;
    name.resize(name.size() - 4);
    if (method != kStored)
      throw Error(
          ErrorCode::unsupported,
          fmt::format("{}: \"{}\" is compressed; numpy.savez stores arrays as they are", path_, name));
    const uint64_t data = local + 30 + number(local + 26, 2) + number(local + 28, 2);
    if (data > size_ || stored > size_ - data) corrupt(fmt::format("\"{}\" ends behind the file", name));
    try {
      list.push_back(read_npy(path_ + ": " + name, data_ + data, stored));
      list.back().name = name;
    } catch (const Error& e) {
      if (e.code() != ErrorCode::unsupported) throw;
    }
    return next;
  }

  const std::string& path_;
  const uint8_t* data_;
  size_t size_;
};

}  // namespace

std::vector<NpyArray> read_npz(const std::string& path) {
  const FileBytes file = map_file(path);
  return ZipReader(path, file.data, file.size).arrays();
}

}  // namespace liuli
