#include "convert/quantize_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <regex>

#include "convert/encode.h"
#include "liuli/error.h"

namespace liuli {
namespace {

[[noreturn]] void refuse(const std::string& reason) { throw Error(ErrorCode::invalid_argument, reason); }

DType type_named(const std::string& name) {
  const auto type = dtype_from_name(name);
  if (!type) refuse(fmt::format("\"{}\" is no element type (such as q4_k, q8_0, f16)", name));
  return *type;
}

struct CompiledRule {
  const TensorTypeRule* rule;
  std::regex expression;
  DType type;
  bool used = false;
};

std::vector<CompiledRule> compile(const std::vector<TensorTypeRule>& rules) {
  std::vector<CompiledRule> compiled;
  for (const TensorTypeRule& rule : rules) {
    try {
      compiled.push_back({&rule, std::regex(rule.pattern), type_named(rule.type)});
    } catch (const std::regex_error& e) {
      refuse(fmt::format("\"{}\" is no regular expression: {}", rule.pattern, e.what()));
    }
  }
  return compiled;
}

/// Integers and F64 are tables, not weights: they stay as they are.
bool is_weight(DType type) { return type < DType::i8 || type > DType::f64; }

class Chooser {
 public:
  Chooser(const QuantizeSource& source, const QuantizeSettings& settings, const TypeMix& mix)
      : settings_(settings), mix_(mix), model_(source.model), rules_(compile(settings.tensor_types)) {
    model_.importance = !settings.imatrix.empty();
  }

  DType choose(const SourceTensor& tensor) {
    if (!is_weight(tensor.type)) return tensor.type;
    if (const auto forced = forced_type(tensor)) return checked(tensor, *forced);
    const TensorUse use = tensor_use(tensor.name, tensor.shape);
    if (use == TensorUse::kept || !settings_.pure) return mix_.type_of(tensor.name, tensor.shape, model_);
    return fitting_type(mix_.base, tensor.columns());
  }

  void refuse_unused_rules() const {
    for (const CompiledRule& rule : rules_)
      if (!rule.used) refuse(fmt::format("\"{}\" matches no tensor of the model", rule.rule->pattern));
  }

 private:
  std::optional<DType> forced_type(const SourceTensor& tensor) {
    for (CompiledRule& rule : rules_) {
      if (!std::regex_search(tensor.name, rule.expression)) continue;
      rule.used = true;
      return rule.type;
    }
    const bool is_output = tensor.name == "output.weight", is_embedding = tensor.name == "token_embd.weight";
    if (is_embedding && !settings_.embedding_type.empty()) return type_named(settings_.embedding_type);
    // The embedding is the output matrix, too, where the file has no other.
    if ((is_output || (is_embedding && model_.tied_embeddings)) && !settings_.output_type.empty())
      return type_named(settings_.output_type);
    return std::nullopt;
  }

  static DType checked(const SourceTensor& tensor, DType type) {
    const DTypeInfo& info = dtype_info(type);
    if (tensor.columns() % info.block != 0)
      refuse(fmt::format("{}: its rows of {} are no whole number of {}'s blocks of {}", tensor.name,
                         tensor.columns(), info.name, info.block));
    return type;
  }

  const QuantizeSettings& settings_;
  const TypeMix& mix_;
  MixModel model_;
  std::vector<CompiledRule> rules_;
};

void check_writable(const SourceTensor& tensor, DType type, const std::string& mix) {
  if (type != tensor.type && !can_encode(type))
    refuse(fmt::format("{}: {} asks for {}, which Liuli reads but does not write", tensor.name, mix,
                       dtype_info(type).name));
}

bool is_quantised(DType type) { return dtype_info(type).block > 1; }

/// Quantising twice adds the errors up.
void warn_about_source(const QuantizeSource& source, QuantizePlan& plan) {
  int again = 0, matrices = 0;
  const SourceTensor* first = nullptr;
  for (size_t i = 0; i < source.tensors.size(); i++) {
    const SourceTensor& tensor = source.tensors[i];
    matrices += tensor.shape.size() > 1;
    if (!is_quantised(tensor.type) || !is_quantised(plan.types[i]) || plan.types[i] == tensor.type) continue;
    if (again++ == 0) first = &tensor;
  }
  if (again == 0) return;
  plan.warnings.push_back(
      fmt::format("{} of {} matrices are quantised already ({}: {}) and are quantised again: errors add up. "
                  "F16, BF16 or F32 is the "
                  "better start.",
                  again, matrices, first->name, dtype_info(first->type).name));
}

}  // namespace

QuantizePlan make_quantize_plan(const QuantizeSource& source, const QuantizeSettings& settings) {
  QuantizePlan plan;
  plan.mix = require_type_mix(settings.type);
  Chooser chooser(source, settings, plan.mix);
  for (const SourceTensor& tensor : source.tensors) {
    plan.types.push_back(chooser.choose(tensor));
    check_writable(tensor, plan.types.back(), settings.type);
  }
  chooser.refuse_unused_rules();
  warn_about_source(source, plan);
  return plan;
}

std::vector<QuantizeType> list_quantize_types() {
  std::vector<QuantizeType> types;
  for (const TypeMix& mix : type_mixes()) {
    const DTypeInfo& info = dtype_info(mix.base);
    const bool writable =
        can_encode(mix.base) &&
        std::all_of(mix.rules.begin(), mix.rules.end(), [](const MixRule& r) { return can_encode(r.type); });
    if (writable) types.push_back({mix.name, 8.0 * info.bytes / info.block});
  }
  std::stable_sort(types.begin(), types.end(), [](const auto& a, const auto& b) { return a.bits < b.bits; });
  return types;
}

}  // namespace liuli
