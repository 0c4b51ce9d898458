#include "engine/engine_parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/missing_tokenizer.h"
#include "engine/tokenizer_data.h"
#include "model/load.h"

namespace liuli {
namespace {

// Names under which vocabularies know the end of a turn or of the text; every one of them ends a generation.
constexpr const char* kEndNames[] = {
    "<|eot_id|>",    "<|im_end|>", "<end_of_turn>", "<｜end▁of▁sentence｜>", "<|eom_id|>", "<|end_of_text|>",
    "<|endoftext|>", "</s>",       "<|end|>"};

std::vector<int> find_end_tokens(const Tokenizer& tokenizer, const Metadata& metadata) {
  std::vector<int> ends;
  auto add = [&](int64_t id) {
    if (id >= 0 && id < tokenizer.vocab_size() && std::find(ends.begin(), ends.end(), id) == ends.end())
      ends.push_back(static_cast<int>(id));
  };
  add(tokenizer.data().eos);
  for (const char* key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    add(metadata.integer(key).value_or(-1));
  const auto& tokens = tokenizer.data().tokens;
  for (size_t id = 0; id < tokens.size(); id++)
    if (tokenizer.is_control(static_cast<int>(id)) &&
        std::find(std::begin(kEndNames), std::end(kEndNames), tokens[id]) != std::end(kEndNames))
      add(static_cast<int64_t>(id));
  return ends;
}

void load_template(EngineParts& parts, const Metadata& metadata, const std::string& name) {
  constexpr const char* kHint = "choose one with --chat-template chatml, llama3, gemma or plain";
  std::string source;
  if (!name.empty()) {
    const char* builtin = builtin_chat_template(name);
    if (builtin == nullptr)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("no built-in chat template \"{}\"; {}", name, kHint));
    source = builtin;
  } else if (const auto stored = metadata.text("tokenizer.chat_template")) {
    source = *stored;
  } else {
    parts.chat_template_problem = fmt::format("{}: the file has no chat template; {}", parts.path, kHint);
    return;
  }
  try {
    parts.chat_template.emplace(std::move(source));
  } catch (const Error& e) {
    parts.chat_template_problem =
        fmt::format("{}: the file's chat template cannot be run ({}); {}", parts.path, e.what(), kHint);
  }
}

}  // namespace

void EngineParts::check_tokens(std::span<const int> ids, int64_t already, int64_t context) const {
  if (ids.empty()) throw Error(ErrorCode::invalid_argument, "there are no tokens to run");
  for (int id : ids)
    if (id < 0 || id >= model->config.vocab_size)
      throw Error(ErrorCode::invalid_argument, fmt::format("token {} is outside the model's vocabulary of {}",
                                                           id, model->config.vocab_size));
  const int64_t total = already + static_cast<int64_t>(ids.size());
  if (total > context)
    throw Error(ErrorCode::out_of_memory,
                fmt::format("{} tokens do not fit into the context of {}", total, context));
}

namespace {
// Some files are only a network ("none" is how converters say so): it still runs on ids.
std::unique_ptr<Tokenizer> find_tokenizer(const WeightSource& source) {
  try {
    return make_tokenizer(tokenizer_data(source.metadata()));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::not_found) throw;
    const auto vocab_size = static_cast<int>(read_model_config(source).vocab_size);
    return make_missing_tokenizer(fmt::format("{}: {}", source.path(), e.what()), vocab_size);
  }
}
}  // namespace

void load_text_parts(EngineParts& parts, const WeightSource& source, const std::string& template_name) {
  parts.tokenizer = find_tokenizer(source);
  parts.end_tokens = find_end_tokens(*parts.tokenizer, source.metadata());
  load_template(parts, source.metadata(), template_name);
}

RunClasses run_classes(const LoadSettings& settings, const WeightSource& source) {
  if (settings.exact) return {ProductClass::exact, ProductClass::exact};
  const bool all_f32 = std::all_of(source.tensors().begin(), source.tensors().end(), [](const TensorInfo& t) {
    return t.shape.size() < 2 || t.type == DType::f32;
  });
  switch (settings.product_class) {
    case ProductClassChoice::prompt:
      return {ProductClass::prompt, ProductClass::prompt};
    case ProductClassChoice::decode:
      return {ProductClass::decode, ProductClass::decode};
    case ProductClassChoice::f32:
      return {ProductClass::f32, ProductClass::f32};
    case ProductClassChoice::automatic:
      break;
  }
  return all_f32 ? RunClasses{ProductClass::f32, ProductClass::f32} : RunClasses{};
}

}  // namespace liuli
