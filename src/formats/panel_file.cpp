#include "formats/panel_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/rows.h"
#include "formats/byte_cursor.h"
#include "formats/strict_json.h"
#include "liuli/error.h"

namespace liuli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMagic = "LIULIPNL";
constexpr uint32_t kVersion = 1;
constexpr uint32_t kMaxHeaderBytes = 64 << 20;
constexpr int kMaxDepth = 4;
constexpr int64_t kDataAlignment = AlignedBuffer::kHugePage, kMatrixAlignment = AlignedBuffer::kAlignment;
// A multiple of a huge page: the page cache keeps what was written together in large folios, which map as huge pages.
constexpr size_t kStep = 4 * AlignedBuffer::kHugePage;

std::string json_of(const PanelFileHeader& header) {
  auto files = Json::array(), matrices = Json::array();
  for (const WeightFile& f : header.files)
    files.push_back({{"name", std::filesystem::path(f.path).filename().string()},
                     {"bytes", f.bytes},
                     {"modified_ns", f.modified_ns}});
  for (const PackedMatrix& m : header.matrices)
    matrices.push_back({{"name", m.name},
                        {"type", dtype_info(m.type).name},
                        {"shape", {m.d_out, m.d_in}},
                        {"bytes", m.bytes}});
  const Json json = {{"liuli", header.liuli}, {"files", std::move(files)}, {"matrices", std::move(matrices)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

int64_t data_begin_after(size_t json_bytes) {
  return round_up(static_cast<int64_t>(kMagic.size() + 2 * sizeof(uint32_t) + json_bytes), kDataAlignment);
}

/// Members of an object of the header, each of the type that is asked for.
class Members {
 public:
  Members(const std::string& path, const nlohmann::json& object, std::string place)
      : path_(path), object_(object), place_(std::move(place)) {
    if (!object.is_object()) fail("is no object");
  }
  std::string text(const char* key) const {
    const nlohmann::json& value = member(key);
    if (!value.is_string()) fail(fmt::format("\"{}\" is no text", key));
    return value.get<std::string>();
  }
  int64_t integer(const char* key) const { return integer(member(key), key); }
  const nlohmann::json& array(const char* key) const {
    const nlohmann::json& value = member(key);
    if (!value.is_array()) fail(fmt::format("\"{}\" is no list", key));
    return value;
  }
  int64_t integer(const nlohmann::json& value, const char* key) const {
    const bool fits =
        value.is_number_integer() && !(value.is_number_unsigned() &&
                                       value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()});
    if (!fits) fail(fmt::format("\"{}\" is no whole number of 64 bits", key));
    return value.get<int64_t>();
  }
  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(ErrorCode::corrupt_file, fmt::format("{}: {}: {}", path_, place_, reason));
  }

 private:
  const nlohmann::json& member(const char* key) const {
    const auto at = object_.find(key);
    if (at == object_.end()) fail(fmt::format("\"{}\" is missing", key));
    return *at;
  }

  const std::string& path_;
  const nlohmann::json& object_;
  std::string place_;
};

PackedMatrix read_matrix(const Members& members) {
  PackedMatrix m;
  m.name = members.text("name");
  const std::string type = members.text("type");
  const auto known = dtype_from_name(type);
  if (!known) members.fail(fmt::format("type {} is not known", quoted_name(type)));
  m.type = *known;
  const nlohmann::json& shape = members.array("shape");
  if (shape.size() != 2) members.fail(fmt::format("\"shape\" has {} numbers, expected 2", shape.size()));
  m.d_out = members.integer(shape[0], "shape");
  m.d_in = members.integer(shape[1], "shape");
  m.bytes = members.integer("bytes");
  return m;
}

PanelFileHeader read_header(const std::string& path, std::string_view text) {
  const nlohmann::json json = parse_json_object(path + ": the header", text, kMaxDepth);
  const Members members(path, json, "the header");
  PanelFileHeader header;
  header.liuli = members.text("liuli");
  for (const nlohmann::json& item : members.array("files")) {
    const Members file(path, item, fmt::format("file {}", header.files.size()));
    header.files.push_back({file.text("name"), file.integer("bytes"), file.integer("modified_ns")});
  }
  for (const nlohmann::json& item : members.array("matrices"))
    header.matrices.push_back(
        read_matrix(Members(path, item, fmt::format("matrix {}", header.matrices.size()))));
  return header;
}

// Gives every matrix its place, from `begin` to the end of the file.
void lay_out(const std::string& path, PanelFileHeader& header, int64_t begin, int64_t file_bytes) {
  const auto fail = [&](const std::string& reason) {
    throw Error(ErrorCode::corrupt_file, fmt::format("{}: {}", path, reason));
  };
  int64_t at = begin;
  for (PackedMatrix& m : header.matrices) {
    if (m.bytes <= 0 || m.bytes % kMatrixAlignment != 0)
      fail(fmt::format("matrix {} has {} bytes, expected a multiple of {}", quoted_name(m.name), m.bytes,
                       kMatrixAlignment));
    if (m.bytes > file_bytes - at)
      fail(fmt::format("matrix {} needs {} bytes from byte {} on, the file has {}: it was cut off",
                       quoted_name(m.name), m.bytes, at, file_bytes));
    m.offset = at;
    at += m.bytes;
  }
  if (at != file_bytes) fail(fmt::format("the matrices end at byte {}, the file at {}", at, file_bytes));
}

}  // namespace

PanelFileWriter::PanelFileWriter(const std::string& path, const PanelFileHeader& header)
    : file_(path), step_(kStep) {
  const std::string json = json_of(header);
  if (json.size() > kMaxHeaderBytes)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: the list of {} matrices takes {} bytes, the limit is {}", path,
                            header.matrices.size(), json.size(), kMaxHeaderBytes));
  const int64_t begin = data_begin_after(json.size());
  file_bytes_ = begin;
  for (const PackedMatrix& m : header.matrices) file_bytes_ += m.bytes;
  file_.expect_size(file_bytes_);
  const auto append_number = [&](uint32_t n) { append(reinterpret_cast<const uint8_t*>(&n), sizeof n); };
  append(reinterpret_cast<const uint8_t*>(kMagic.data()), kMagic.size());
  append_number(kVersion);
  append_number(static_cast<uint32_t>(json.size()));
  append(reinterpret_cast<const uint8_t*>(json.data()), json.size());
  const std::vector<uint8_t> zeros(static_cast<size_t>(begin - written_));
  append(zeros.data(), zeros.size());
}

void PanelFileWriter::append(const uint8_t* data, size_t bytes) {
  written_ += static_cast<int64_t>(bytes);
  LIULI_CHECK(written_ <= file_bytes_);
  while (bytes > 0) {
    const size_t n = std::min(bytes, kStep - filled_);
    std::memcpy(step_.data() + filled_, data, n);
    filled_ += n;
    data += n;
    bytes -= n;
    if (filled_ < kStep) return;
    file_.write(step_.data(), kStep);
    filled_ = 0;
  }
}

void PanelFileWriter::finish() {
  LIULI_CHECK(written_ == file_bytes_);
  file_.write(step_.data(), filled_);
  file_.sync();
  file_.commit();
}

PanelFile::PanelFile(const std::string& path) : PanelFile(path, map_file(path)) {}

PanelFile::PanelFile(const std::string& path, FileBytes bytes) : path_(path), bytes_(std::move(bytes)) {
  ByteCursor cursor(path_, bytes_.data, bytes_.size);
  cursor.enter("panel file");
  if (std::memcmp(cursor.take(kMagic.size(), "the beginning"), kMagic.data(), kMagic.size()) != 0)
    throw Error(ErrorCode::corrupt_file,
                fmt::format("{}: is no panel file: it does not begin with \"{}\"", path_, kMagic));
  const auto version = cursor.read<uint32_t>("the version");
  if (version != kVersion)
    throw Error(ErrorCode::unsupported, fmt::format("{}: is a panel file of version {}, this Liuli reads {}",
                                                    path_, version, kVersion));
  const auto length = cursor.read<uint32_t>("the header's length");
  if (length > kMaxHeaderBytes)
    cursor.fail("the header has {} bytes, the limit is {}", length, kMaxHeaderBytes);
  const uint8_t* text = cursor.take(length, "the header");
  header_ = read_header(path_, {reinterpret_cast<const char*>(text), length});
  data_begin_ = data_begin_after(length);
  lay_out(path_, header_, data_begin_, file_bytes());
  prefer_huge_pages(bytes_);
}

}  // namespace liuli
