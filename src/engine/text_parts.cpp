// The text side of an engine: tokenizer, end tokens, chat template and sampling defaults, from either kind of source.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/engine_parts.h"
#include "engine/missing_tokenizer.h"
#include "engine/tokenizer_data.h"
#include "model/load.h"
#include "tokenizers/hugging_face.h"

namespace liuli {
namespace {

using nlohmann::json;

// Names under which vocabularies know the end of a turn or of the text; every one of them ends a generation.
constexpr const char* kEndNames[] = {
    "<|eot_id|>",    "<|im_end|>", "<end_of_turn>", "<｜end▁of▁sentence｜>", "<|eom_id|>", "<|end_of_text|>",
    "<|endoftext|>", "</s>",       "<|end|>"};

void add_end_token(EngineParts& parts, int64_t id) {
  auto& ends = parts.end_tokens;
  if (id >= 0 && id < parts.tokenizer->vocab_size() && std::find(ends.begin(), ends.end(), id) == ends.end())
    ends.push_back(static_cast<int>(id));
}

void add_end_tokens_by_name(EngineParts& parts) {
  const auto& tokens = parts.tokenizer->data().tokens;
  for (size_t id = 0; id < tokens.size(); id++)
    if (parts.tokenizer->is_control(static_cast<int>(id)) &&
        std::find(std::begin(kEndNames), std::end(kEndNames), tokens[id]) != std::end(kEndNames))
      add_end_token(parts, static_cast<int64_t>(id));
}

constexpr const char* kTemplateHint = "choose one with --chat-template chatml, llama3, gemma or plain";

void load_template(EngineParts& parts, std::optional<std::string> stored, const std::string& name) {
  if (!name.empty()) {
    const char* builtin = builtin_chat_template(name);
    if (builtin == nullptr)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("no built-in chat template \"{}\"; {}", name, kTemplateHint));
    stored = builtin;
  }
  if (!stored) {
    parts.chat_template_problem =
        fmt::format("{}: the model has no chat template; {}", parts.path, kTemplateHint);
    return;
  }
  try {
    parts.chat_template.emplace(std::move(*stored));
  } catch (const Error& e) {
    parts.chat_template_problem = fmt::format("{}: the model's chat template cannot be run ({}); {}",
                                              parts.path, e.what(), kTemplateHint);
  }
}

// Some sources are only a network: it still runs on ids.
std::unique_ptr<Tokenizer> no_tokenizer(const WeightSource& source, const std::string& reason) {
  const auto vocab_size = static_cast<int>(read_model_config(source).vocab_size);
  return make_missing_tokenizer(fmt::format("{}: {}", source.path(), reason), vocab_size);
}

void load_from_gguf(EngineParts& parts, const WeightSource& source, const std::string& template_name) {
  const Metadata& metadata = source.metadata();
  try {
    parts.tokenizer = make_tokenizer(tokenizer_data(metadata));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::not_found) throw;
    parts.tokenizer = no_tokenizer(source, e.what());
  }
  add_end_token(parts, parts.tokenizer->data().eos);
  for (const char* key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    add_end_token(parts, metadata.integer(key).value_or(-1));
  add_end_tokens_by_name(parts);
  load_template(parts, metadata.text("tokenizer.chat_template"), template_name);
}

[[noreturn]] void bad_generation_config(const char* key, const json& value) {
  throw Error(ErrorCode::corrupt_file,
              fmt::format("generation_config.json: \"{}\" is {}", key, value.dump()));
}

// One id, or a list of them.
void add_end_tokens(EngineParts& parts, const json& config) {
  const auto found = config.find("eos_token_id");
  if (found == config.end() || found->is_null()) return;
  for (const json& id : found->is_array() ? *found : json::array({*found})) {
    if (!id.is_number_integer()) bad_generation_config("eos_token_id", *found);
    add_end_token(parts, id.get<int64_t>());
  }
}

template <class Number>
std::optional<Number> stated(const json& config, const char* key, double least) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (!found->is_number() || found->get<double>() < least || found->get<double>() > INT32_MAX)
    bad_generation_config(key, *found);
  return found->get<Number>();
}

GenerationDefaults generation_defaults(const json& config) {
  GenerationDefaults defaults;
  const auto sample = config.find("do_sample");
  if (sample != config.end() && sample->is_boolean() && sample->get<bool>()) {
    defaults.temperature = stated<float>(config, "temperature", 0);
    if (!defaults.temperature) defaults.temperature = 1.0f;  // what sampling without a temperature means
    defaults.top_k = stated<int>(config, "top_k", 0);
    defaults.top_p = stated<float>(config, "top_p", 0);
    defaults.min_p = stated<float>(config, "min_p", 0);
  }
  defaults.repetition_penalty = stated<float>(config, "repetition_penalty", 1e-6);
  return defaults;
}

void read_generation_config(EngineParts& parts, const WeightSource& source) {
  const std::optional<std::string> text = source.companion("generation_config.json");
  if (!text) return;
  const json config = json::parse(*text, nullptr, false);
  if (!config.is_object())
    throw Error(ErrorCode::corrupt_file, "generation_config.json holds no JSON object");
  add_end_tokens(parts, config);
  parts.generation_defaults = generation_defaults(config);
}

void load_from_folder(EngineParts& parts, const WeightSource& source, const std::string& template_name) {
  const CompanionFiles files = [&](std::string_view name) { return source.companion(name); };
  const Metadata& config = source.metadata();
  std::optional<std::string> stored;
  if (has_tokenizer_files(files)) {
    HuggingFaceText text = read_hugging_face_text(files, config.text("model_type").value_or(""));
    parts.tokenizer = std::move(text.tokenizer);
    if (!text.chat_template.empty()) stored = std::move(text.chat_template);
  } else {
    parts.tokenizer = no_tokenizer(source, "the folder has no tokenizer");
  }
  add_end_token(parts, parts.tokenizer->data().eos);
  if (config.has("eos_token_id")) {
    const bool list = config.is_array("eos_token_id");
    for (const int64_t id :
         list ? *config.integers("eos_token_id") : std::vector{*config.integer("eos_token_id")})
      add_end_token(parts, id);
  }
  read_generation_config(parts, source);
  add_end_tokens_by_name(parts);
  load_template(parts, std::move(stored), template_name);
}

}  // namespace

void load_text_parts(EngineParts& parts, const WeightSource& source, const std::string& template_name) {
  if (source.naming() == Naming::gguf) return load_from_gguf(parts, source, template_name);
  try {
    load_from_folder(parts, source, template_name);
  } catch (const Error& e) {
    const std::string message = e.what();
    throw Error(e.code(), message.starts_with(source.path()) ? message : source.path() + ": " + message);
  }
}

}  // namespace liuli
