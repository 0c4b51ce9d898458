#include "convert/tokenizer_keys.h"

#include <algorithm>

#include <fmt/format.h>

#include "formats/json_metadata.h"
#include "liuli/error.h"
#include "tokenizers/hugging_face.h"
#include "tokenizers/tokenizer_in_gguf.h"

namespace liuli {
namespace {

/// Readers take the number of tokens for the number of rows.
void fit_to_rows(TokenizerData& data, size_t rows, std::vector<std::string>& warnings) {
  if (data.tokens.size() > rows)
    warnings.push_back(fmt::format("{} tokens from \"{}\" on are left out: the embedding has {} rows",
                                   data.tokens.size() - rows, data.tokens[rows], rows));
  for (int* id : {&data.bos, &data.eos, &data.unknown, &data.padding})
    if (*id >= static_cast<int64_t>(rows)) *id = -1;
  data.types.resize(data.tokens.size(), TokenType::normal);
  const size_t known = std::min(data.tokens.size(), rows);
  data.tokens.resize(rows);
  data.types.resize(rows, TokenType::unused);
  if (!data.scores.empty()) data.scores.resize(rows, -1e6f);
  for (size_t id = 0; id < rows; id++)
    if (id >= known || data.tokens[id].empty()) data.tokens[id] = fmt::format("[PAD{}]", id);
}

void add_id(GgufKeys& keys, const char* name, int64_t id) {
  if (id >= 0) keys.u32(fmt::format("tokenizer.ggml.{}_token_id", name), static_cast<uint32_t>(id));
}

void add_data(GgufKeys& keys, const TokenizerData& data) {
  keys.text("tokenizer.ggml.model", data.model);
  keys.text("tokenizer.ggml.pre", data.pre.empty() ? "default" : data.pre);
  keys.texts("tokenizer.ggml.tokens", data.tokens);
  if (!data.scores.empty()) keys.f32s("tokenizer.ggml.scores", data.scores);
  std::vector<int32_t> types;
  for (const TokenType type : data.types) types.push_back(static_cast<int32_t>(type));
  keys.i32s("tokenizer.ggml.token_type", types);
  if (data.model == "gpt2") keys.texts("tokenizer.ggml.merges", data.merges);
  add_id(keys, "bos", data.bos);
  add_id(keys, "eos", data.eos);
  add_id(keys, "unknown", data.unknown);
  add_id(keys, "padding", data.padding);
  if (data.model == "bert") {  // names that other readers look for
    add_id(keys, "cls", data.bos);
    add_id(keys, "seperator", data.eos);
  }
  keys.boolean("tokenizer.ggml.add_bos_token", data.add_bos);
  keys.boolean("tokenizer.ggml.add_eos_token", data.add_eos);
  if (data.model == "llama" || data.model == "t5")
    keys.boolean("tokenizer.ggml.add_space_prefix", data.add_space_prefix);
  if (data.model == "t5")
    keys.boolean("tokenizer.ggml.remove_extra_whitespaces", data.remove_extra_whitespaces);
  if (!data.precompiled_charsmap.empty())
    keys.u8s("tokenizer.ggml.precompiled_charsmap", data.precompiled_charsmap);
}

void append_ids(const Metadata& config, const char* key, std::vector<int64_t>& ids) {
  if (!config.has(key)) return;
  const auto listed = config.is_array(key) ? config.integers(key) : std::nullopt;
  for (const int64_t id : listed ? *listed : std::vector<int64_t>{config.integer(key).value_or(-1)})
    if (id >= 0 && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

/// What ends a generation besides EOS: the format has two more places.
void add_end_tokens(const WeightSource& folder, int64_t rows, TokenizerData& data, GgufKeys& keys,
                    std::vector<std::string>& warnings) {
  std::vector<int64_t> ends;
  append_ids(folder.metadata(), "eos_token_id", ends);
  if (const auto text = folder.companion("generation_config.json"))
    append_ids(JsonMetadata::parse(folder.path() + "/generation_config.json", *text), "eos_token_id", ends);
  std::erase_if(ends, [&](int64_t id) { return id >= rows; });
  if (data.eos < 0 && !ends.empty()) data.eos = static_cast<int>(ends.front());
  std::erase(ends, data.eos);
  if (!ends.empty()) add_id(keys, "eot", ends[0]);
  if (ends.size() > 1) add_id(keys, "eom", ends[1]);
  if (ends.size() > 2)
    warnings.push_back(
        fmt::format("{} of the tokens that end a text have no place in GGUF", ends.size() - 2));
}

}  // namespace

void add_no_tokenizer(GgufKeys& keys) { keys.text("tokenizer.ggml.model", "none"); }

void add_tokenizer_keys(const WeightSource& folder, int64_t vocab_size, GgufKeys& keys,
                        std::vector<std::string>& warnings) {
  const CompanionFiles files = [&](std::string_view name) { return folder.companion(name); };
  if (!has_tokenizer_files(files)) {
    warnings.push_back("the folder has no tokenizer: the file takes token ids only");
    return add_no_tokenizer(keys);
  }
  TokenizerInGguf tokenizer;
  try {
    tokenizer = tokenizer_in_gguf(files, folder.metadata().text("model_type").value_or(""));
  } catch (const Error& e) {
    throw Error(e.code(), fmt::format("{}: {}; --no-tokenizer leaves it out", folder.path(), e.what()));
  }
  warnings.insert(warnings.end(), tokenizer.warnings.begin(), tokenizer.warnings.end());
  TokenizerData& data = tokenizer.data;
  fit_to_rows(data, static_cast<size_t>(vocab_size), warnings);
  add_end_tokens(folder, vocab_size, data, keys, warnings);
  add_data(keys, data);
  if (!tokenizer.chat_template.empty()) keys.text("tokenizer.chat_template", tokenizer.chat_template);
}

}  // namespace liuli
