#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "formats/safetensors.h"
#include "liuli/error.h"

namespace liuli {
namespace {

/// The format has GGUF's names for plain types, and none for blocks.
void check_spec(const std::string& path, const SafetensorsSpec& spec) {
  if (dtype_info(spec.type).block != 1)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: tensor \"{}\" is {}, safetensors holds plain types only", path, spec.name,
                            dtype_info(spec.type).name));
  for (const int64_t d : spec.shape)
    if (d < 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: tensor \"{}\" has a dimension of {}", path, spec.name, d));
}

int64_t bytes_of(const SafetensorsSpec& spec) {
  int64_t elements = 1;
  for (const int64_t d : spec.shape) elements *= d;
  return row_bytes(spec.type, elements);
}

/// The header, padded with spaces so that the data starts at a multiple of 8.
std::string header_text(const std::string& path, const std::vector<SafetensorsSpec>& specs,
                        const SafetensorsMetadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::set<std::string_view> names{"__metadata__"};
  int64_t begin = 0;
  for (const SafetensorsSpec& spec : specs) {
    check_spec(path, spec);
    if (!names.insert(spec.name).second)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: tensor \"{}\" is announced twice or reserved", path, spec.name));
    const int64_t end = begin + bytes_of(spec);
    header[spec.name] = {
        {"dtype", dtype_info(spec.type).name}, {"shape", spec.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::string& path, const std::vector<SafetensorsSpec>& specs,
                                     const SafetensorsMetadata& metadata)
    : file_(path) {
  const std::string header = header_text(path, specs, metadata);
  const auto size = static_cast<uint64_t>(header.size());
  file_.write(&size, sizeof size);
  file_.write(header);
  const auto data = static_cast<int64_t>(sizeof size + header.size());
  for (const SafetensorsSpec& spec : specs) {
    begins_.push_back(data + announced_);
    announced_ += bytes_of(spec);
  }
  begins_.push_back(data + announced_);
}

void SafetensorsWriter::write_at(size_t array, int64_t offset, const void* data, size_t bytes) {
  const int64_t begin = begins_.at(array), end = begins_.at(array + 1);
  if (offset < 0 || begin + offset + static_cast<int64_t>(bytes) > end)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: array {} has {} bytes, {} are being written at {}", file_.path(), array,
                            end - begin, bytes, offset));
  out_of_order_ = true;
  file_.write_at(begin + offset, data, bytes);
}

void SafetensorsWriter::append(const void* data, size_t bytes) {
  if (static_cast<int64_t>(bytes) > announced_ - written_)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} bytes of data were announced, {} are being written", file_.path(),
                            announced_, written_ + static_cast<int64_t>(bytes)));
  file_.write(data, bytes);
  written_ += static_cast<int64_t>(bytes);
}

void SafetensorsWriter::finish() {
  if (out_of_order_)
    file_.set_size(begins_.back());
  else if (written_ != announced_)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} bytes of data were announced, only {} were written", file_.path(),
                            announced_, written_));
  file_.commit();
}

}  // namespace liuli
