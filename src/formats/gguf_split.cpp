// Models split over files: PREFIX-00001-of-0000N.gguf, numbers from 1.
//
// Each part is a complete GGUF file with its own tensors. Part 1 has all metadata; every part says split.no
// (from 0), split.count and split.tensors.count (over all parts). A joined file may keep split.count 0 or 1:
// not split.
#include <cctype>
#include <optional>

#include "formats/gguf.h"

namespace liuli {
namespace {

constexpr int64_t kMaxParts = 65535;  // split.count is a u16

/// A path taken apart: "dir/PREFIX-", 1, N.
struct SplitName {
  std::string prefix;
  int number, count;

  std::string of_part(int64_t part) const {
    return fmt::format("{}{:05d}-of-{:05d}.gguf", prefix, part, count);
  }
};

std::optional<int> five_digits(std::string_view text) {
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + (c - '0');
  }
  return value;
}

std::optional<SplitName> split_name(const std::string& path) {
  constexpr std::string_view kShape = "-00001-of-00003.gguf";
  if (path.size() <= kShape.size()) return std::nullopt;
  const std::string_view tail = std::string_view(path).substr(path.size() - kShape.size());
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf") return std::nullopt;
  const auto number = five_digits(tail.substr(1, 5)), count = five_digits(tail.substr(10, 5));
  if (!number || !count) return std::nullopt;
  return SplitName{path.substr(0, path.size() - kShape.size() + 1), *number, *count};
}

[[noreturn]] void fail(ErrorCode code, const std::string& path, const std::string& reason) {
  throw Error(code, fmt::format("{}: {}", path, reason));
}

int64_t required(const GgufFile& part, const char* key) {
  const auto value = part.metadata.integer(key);
  if (!value)
    fail(ErrorCode::corrupt_file, part.path, fmt::format("key \"{}\" is missing, every part needs it", key));
  return *value;
}

void expect(const GgufFile& part, const char* key, int64_t wanted, const char* source) {
  const int64_t stored = required(part, key);
  if (stored != wanted)
    fail(ErrorCode::corrupt_file, part.path,
         fmt::format("key \"{}\" is {}, {} says {}", key, stored, source, wanted));
}

/// The name of part 1, checked against its keys.
SplitName checked_first_name(const GgufFile& first, int64_t count) {
  if (count > kMaxParts || count < 0)
    fail(ErrorCode::corrupt_file, first.path,
         fmt::format("key \"split.count\" is {}, allowed are 0 … {}", count, kMaxParts));
  const auto name = split_name(first.path);
  const int64_t no = required(first, "split.no");
  if (!name)
    fail(ErrorCode::invalid_argument, first.path,
         fmt::format("is part {} of a model split into {} files; such a file must be named "
                     "NAME-00001-of-{:05d}.gguf to "
                     "find the others",
                     no + 1, count, count));
  if (no != 0 || name->number != 1)
    fail(ErrorCode::invalid_argument, first.path,
         fmt::format("is part {} of {} (split.no {}); open the first one, {}", name->number, count, no,
                     name->of_part(1)));
  expect(first, "split.count", name->count, "the file name");
  return *name;
}

void check_total(const std::vector<GgufFile>& parts) {
  int64_t total = 0;
  for (const GgufFile& part : parts) total += static_cast<int64_t>(part.tensors.size());
  const int64_t stored = required(parts[0], "split.tensors.count");
  if (stored != total)
    fail(ErrorCode::corrupt_file, parts[0].path,
         fmt::format("key \"split.tensors.count\" is {}, the {} parts hold {} tensors", stored, parts.size(),
                     total));
}

}  // namespace

std::unique_ptr<WeightSource> open_gguf(const std::string& path) {
  std::vector<GgufFile> parts;
  parts.push_back(parse_gguf(path, map_file(path)));
  const int64_t count = parts[0].metadata.integer("split.count").value_or(0);
  if (count == 0 || count == 1) return join_gguf(std::move(parts));
  const SplitName name = checked_first_name(parts[0], count);
  for (int64_t i = 1; i < count; i++) {
    const std::string sibling = name.of_part(i + 1);
    parts.push_back(parse_gguf(sibling, map_file(sibling)));
    expect(parts.back(), "split.no", i, "the file name");
    expect(parts.back(), "split.count", count, "the first part");
  }
  check_total(parts);
  return join_gguf(std::move(parts));
}

}  // namespace liuli
