// Fuzz target of Hugging Face folders: any config.json, index and shards must give a source whose every answer can be
// used, or an Error.
//
// An input is  config.json 0xFF index 0xFF shard  (0xFF is in no UTF-8 text). An empty index is none: one file. With
// an index the same bytes are both shards, "one" and "two", and the index says which of them counts for a tensor.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ask_source.h"
#include "formats/hugging_face.h"

namespace {

using namespace liuli;

/// The bytes up to 0xFF; `at` moves behind it.
std::string_view section(const uint8_t*& at, const uint8_t* end) {
  const uint8_t* stop = std::find(at, end, uint8_t{0xFF});
  const std::string_view text(reinterpret_cast<const char*>(at), static_cast<size_t>(stop - at));
  at = stop == end ? end : stop + 1;
  return text;
}

HuggingFaceParts parts_of(const uint8_t* at, const uint8_t* end) {
  const std::string_view config = section(at, end), index = section(at, end);
  const FileBytes shard{at, static_cast<size_t>(end - at), nullptr};
  HuggingFaceParts parts{"input", "folder", JsonMetadata::parse("config.json", config), {}, std::nullopt};
  parts.shards.emplace_back("folder/one", shard);
  if (!index.empty()) {
    parts.weight_map = parse_weight_map("index", index);
    parts.shards.emplace_back("folder/two", shard);
  }
  return parts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto source = join_hugging_face(parts_of(data, data + size));
    ask_everything(source->metadata());
    read_tensors(*source);
  } catch (const Error&) {
    // The reader's way to say no.
  }
  return 0;
}
