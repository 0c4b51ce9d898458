#include "engine/engine_parts.h"

#include <algorithm>

#include <fmt/format.h>

namespace liuli {
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

void EngineParts::require_logits(const char* work) const {
  const ModelConfig& c = model->config;
  if (c.has_output) return;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("{}: {} models give hidden states and predict no next token: no {}; see `liuli embed` and "
                  "`liuli trace`",
                  path, c.family, work));
}

void EngineParts::check_beside(const BesideTheTokens& beside, size_t n_tokens) const {
  const ModelConfig& c = model->config;
  if (c.is_encoder_decoder() && beside.source.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: a {} model needs a source text (--source or --source-ids)", path, c.family));
  if (!c.is_encoder_decoder() && !beside.source.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: a {} model has no encoder that could read a source", path, c.family));
  if (!beside.source.empty()) check_tokens(beside.source, 0, c.max_seq_len);
  if (beside.token_types.empty()) return;
  if (beside.token_types.size() != n_tokens)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} token types for {} tokens", beside.token_types.size(), n_tokens));
  for (const int type : beside.token_types)
    if (type < 0 || type >= c.n_token_types)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("token type {} is outside the model's {} types", type, c.n_token_types));
}

RunClasses run_classes(const LoadSettings& settings, const WeightSource& source) {
  if (settings.exact) return {ProductClass::exact, ProductClass::exact};
  // Tables of integers (BERT's position_ids) are buffers that nothing is multiplied with.
  const bool all_f32 = std::all_of(source.tensors().begin(), source.tensors().end(), [](const TensorInfo& t) {
    return t.shape.size() < 2 || t.type == DType::f32 || t.type == DType::i64 || t.type == DType::i32;
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
