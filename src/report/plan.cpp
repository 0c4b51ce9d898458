#include "report/plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/prompt_chunk.h"

namespace liuli {
namespace {

// What the plan is made for.
struct Planned {
  const kernels::Kernels& table;
  RunClasses classes;
  bool int8_prompts;

  const kernels::WeightKernels& kernels_of(const Matrix& m) const {
    return table.weights[static_cast<size_t>(m.type())];
  }
  bool in_int8(const kernels::WeightKernels& kernel) const {
    return int8_prompts && kernel.expand_codes != nullptr;
  }
};

std::string reason(const Matrix& m, const kernels::WeightKernels& kernel, const Planned& planned) {
  const kernels::Kernels& table = planned.table;
  if (!m.has_panels()) return "exact run: file rows are decoded and summed in double";
  if (!kernel.fast && table.isa == kernels::Isa::scalar)
    return "the scalar level's plain loops: the reference";
  if (!kernel.fast)
    return fmt::format("no {} kernel for {}: rows are decoded to f32 on the way", table.name,
                       dtype_info(m.type()).name);
  if (planned.classes.generated == ProductClass::f32) return "f32 class: decoded weights, f32 FMA in order";
  const char* generated = kernel.integer_decode ? "codes × 16-bit integer activations" : "f32 activations";
  const char* prompts = planned.in_int8(kernel)            ? "× 8-bit integer activations"
                        : kernel.expand_fixed16 != nullptr ? "in 16-bit fixed point"
                                                           : "through bf16 tiles";
  return fmt::format("{}; prompts {}", generated, prompts);
}

// The kernels that a prompt goes through, by what its matrices are made of.
std::string prompt_kernels(const Model& model, const Planned& planned) {
  bool bf16 = false, fixed = false, int8 = false;
  model.for_each_matrix([&](const Matrix& m) {
    const auto& kernel = planned.kernels_of(m);
    (planned.in_int8(kernel) ? int8 : kernel.expand_fixed16 != nullptr ? fixed : bf16) = true;
  });
  std::string names;
  const auto add = [&](bool used, const char* of, const char* name) {
    if (used) names.append(names.empty() ? "" : "; ").append(names.empty() ? "" : of).append(name);
  };
  add(int8, "", planned.table.prompt_int8.name);
  add(bf16, "others: ", planned.table.prompt.name);
  add(fixed, "others: ", planned.table.prompt_fixed16.name);
  return names;
}

PlannedWeight plan_weight(const Matrix& m, const Planned& planned) {
  const auto& kernel = planned.kernels_of(m);
  PlannedWeight w;
  w.name = m.name();
  w.type = dtype_info(m.type()).name;
  w.shape = {m.d_out(), m.d_in()};
  w.layout = m.has_panels() ? kernels::panel_layout(m.type()).name : "file";
  w.kernel = m.has_panels() ? kernel.name : "scalar, double";
  w.fast = m.has_panels() && kernel.fast;
  w.file_bytes = m.bytes();
  w.run_bytes = m.has_panels() ? static_cast<int64_t>(m.run_bytes()) : m.bytes();
  w.why = reason(m, kernel, planned);
  return w;
}

}  // namespace

ModelPlan make_plan(const Model& model, RunClasses classes, const Runner& runner, int64_t context) {
  const auto& table = kernels::best_kernels();
  const Planned planned{table, classes, runner.int8_prompts};
  const auto& attention = attention_kernels(classes.prompt, model.cache_form);
  ModelPlan plan;
  plan.isa = table.name;
  plan.prompt_kernel =
      classes.prompt == ProductClass::prompt ? prompt_kernels(model, planned) : "as generated tokens";
  plan.attention_kernel = attention.name;
  plan.cache_type = to_string(cache_type_in(classes.prompt, model.cache_form));
  plan.prompt_class = to_string(classes.prompt);
  plan.generated_class = to_string(classes.generated);
  plan.prompt_products = classes.prompt != ProductClass::prompt ? "" : runner.int8_prompts ? "int8" : "bf16";
  plan.threads = runner.pool.size();
  plan.panel_file = model.panel_file;
  model.for_each_matrix([&](const Matrix& m) {
    plan.weights.push_back(plan_weight(m, planned));
    plan.weight_bytes += plan.weights.back().run_bytes;
  });
  const auto page = static_cast<int64_t>(KvCache::bytes_per_page(cache_shape(model.config), attention));
  plan.cache_bytes_per_token = page / kernels::kPagePositions;
  plan.context = context > 0 ? context : model.config.max_seq_len;
  plan.prompt_chunk = static_cast<int>(std::min<int64_t>(model.prompt_chunk, plan.context));
  plan.pass_bytes = pass_bytes(model.config, plan.prompt_chunk);
  plan.cache_bytes = (plan.context + kernels::kPagePositions - 1) / kernels::kPagePositions * page;
  return plan;
}

}  // namespace liuli
