// A trained vocabulary as the files that every Hugging Face program reads.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "liuli/error.h"
#include "train/bpe_trainer.h"

namespace liuli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

Json byte_level(bool splits) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", splits}};
}

Json pre_tokenizer_json(const std::string& kind) {
  if (kind == "gpt-2") return byte_level(true);
  if (kind != "qwen2")
    throw Error(ErrorCode::unsupported,
                fmt::format("tokenizer kind \"{}\": expected qwen2, gpt-2 or characters", kind));
  const Json split = {
      {"type", "Split"}, {"pattern", {{"Regex", kQwenPattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, byte_level(false)}}};
}

Json replacement(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

void add_parts(const TokenizerTraining& settings, Json& file) {
  if (settings.kind == "characters") {
    file["normalizer"] = replacement(" ", "▁");
    file["pre_tokenizer"] = nullptr;
    file["post_processor"] = nullptr;
    file["decoder"] = {{"type", "Sequence"},
                       {"decoders", {replacement("▁", " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}};
    return;
  }
  file["normalizer"] = settings.kind == "qwen2" ? Json{{"type", "NFC"}} : Json(nullptr);
  file["pre_tokenizer"] = pre_tokenizer_json(settings.kind);
  file["post_processor"] = byte_level(false);
  file["decoder"] = byte_level(true);
}

Json added_tokens(const TokenizerTraining& settings) {
  Json added = Json::array();
  for (const std::string& token : settings.special)
    added.push_back({{"id", added.size()},
                     {"content", token},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  return added;
}

std::string text_of(const Json& json) { return json.dump(2, ' ', false) + "\n"; }

}  // namespace

std::string tokenizer_json(const TrainedVocabulary& vocabulary, const TokenizerTraining& settings) {
  const bool characters = settings.kind == "characters";
  Json file = {{"version", "1.0"},
               {"truncation", nullptr},
               {"padding", nullptr},
               {"added_tokens", added_tokens(settings)}};
  add_parts(settings, file);
  Json model = {{"type", "BPE"},
                {"dropout", nullptr},
                {"unk_token", characters ? Json("<unk>") : Json(nullptr)},
                {"continuing_subword_prefix", nullptr},
                {"end_of_word_suffix", nullptr},
                {"fuse_unk", characters},
                {"byte_fallback", characters},
                {"ignore_merges", false}};
  Json ids = Json::object(), merges = Json::array();
  // An ordered object looks a key up by walking: so large a one is filled from behind.
  auto& entries = ids.get_ref<Json::object_t&>();
  for (size_t i = 0; i < vocabulary.tokens.size(); i++)
    static_cast<std::vector<Json::object_t::value_type>&>(entries).emplace_back(vocabulary.tokens[i], i);
  for (const auto& [left, right] : vocabulary.merges) merges.push_back({left, right});
  model["vocab"] = std::move(ids);
  model["merges"] = std::move(merges);
  file["model"] = std::move(model);
  return text_of(file);
}

std::string tokenizer_config_json(const TokenizerTraining& settings, int64_t context) {
  const std::string end = settings.special.empty() ? "" : settings.special.front();
  Json file = {{"tokenizer_class", "PreTrainedTokenizerFast"},
               {"add_bos_token", false},
               {"add_eos_token", false},
               {"clean_up_tokenization_spaces", false}};
  if (!end.empty()) file["bos_token"] = file["eos_token"] = file["pad_token"] = end;
  if (settings.kind == "characters") file["unk_token"] = "<unk>";
  if (context > 0) file["model_max_length"] = context;
  return text_of(file);
}

}  // namespace liuli
