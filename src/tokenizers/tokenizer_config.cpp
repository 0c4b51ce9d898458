#include "tokenizers/tokenizer_config.h"

#include <fmt/format.h>

#include <charconv>

#include "liuli/error.h"

namespace liuli {
namespace {

using nlohmann::json;

json optional_file(const CompanionFiles& files, const std::string& name) {
  const std::optional<std::string> text = files(name);
  return text ? parse_companion(*text, name) : json::object();
}

// A token is given as a string or as an object with its content; null is none.
std::string token_name(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_object()) return "";
  const auto content = found->find("content");
  return content != found->end() && content->is_string() ? content->get<std::string>() : "";
}

SpecialNames special_names(const json& config, const json& map) {
  const auto name = [&](const char* key) {
    const std::string stated = token_name(config, key);
    return stated.empty() ? token_name(map, key) : stated;
  };
  SpecialNames names;
  names.bos = name("bos_token");
  names.eos = name("eos_token");
  names.unknown = name("unk_token");
  names.padding = name("pad_token");
  for (const char* key : {"cls_token", "sep_token", "mask_token"}) names.others.push_back(name(key));
  const JsonPart part(config, "tokenizer_config.json");
  if (part.has("add_bos_token")) names.add_bos = part.flag("add_bos_token", false);
  if (part.has("add_eos_token")) names.add_eos = part.flag("add_eos_token", false);
  return names;
}

std::vector<AddedEntry> added_entries(const json& config, const json& added_tokens) {
  std::vector<AddedEntry> entries;
  if (config.contains("added_tokens_decoder")) {
    const JsonPart decoder = JsonPart(config, "tokenizer_config.json").part("added_tokens_decoder");
    for (const auto& [key, value] : decoder.json().items()) {
      int64_t id = -1;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (error != std::errc() || end != key.data() + key.size())
        decoder.corrupt(fmt::format("has the key \"{}\", no token id", key));
      entries.push_back(read_added_token(JsonPart(value, decoder.place() + "." + key), id));
    }
  }
  for (const auto& [token, id] : added_tokens.items()) {
    if (!id.is_number_integer())
      throw Error(ErrorCode::corrupt_file, fmt::format("added_tokens.json: \"{}\" has no id", token));
    AddedEntry entry;
    entry.id = id.get<int64_t>();
    entry.token.text = token;
    entry.token.normalized = true;
    entries.push_back(std::move(entry));
  }
  return entries;
}

// A string, or a list of named ones, of which "default" is meant.
std::string configured_template(const json& config) {
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return "";
  if (found->is_string()) return found->get<std::string>();
  const JsonPart part(config, "tokenizer_config.json");
  std::string first;
  for (const JsonPart& named : part.parts("chat_template")) {
    if (named.text("name") == "default") return named.text("template");
    if (first.empty()) first = named.text("template");
  }
  return first;
}

}  // namespace

json parse_companion(std::string_view text, const std::string& name) {
  json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object())
    throw Error(ErrorCode::corrupt_file,
                fmt::format("{} {}", name, parsed.is_discarded() ? "is no JSON" : "holds no JSON object"));
  return parsed;
}

TokenizerConfig read_tokenizer_config(const CompanionFiles& files) {
  TokenizerConfig config;
  config.json = optional_file(files, "tokenizer_config.json");
  const json map = optional_file(files, "special_tokens_map.json");
  config.tokenizer_class = JsonPart(config.json, "tokenizer_config.json").text("tokenizer_class", "");
  constexpr std::string_view kFast = "Fast";
  if (config.tokenizer_class.ends_with(kFast))
    config.tokenizer_class.resize(config.tokenizer_class.size() - kFast.size());
  config.names = special_names(config.json, map);
  config.added = added_entries(config.json, optional_file(files, "added_tokens.json"));
  const std::optional<std::string> own = files("chat_template.jinja");
  config.chat_template = own ? *own : configured_template(config.json);
  return config;
}

}  // namespace liuli
