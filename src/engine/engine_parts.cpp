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
