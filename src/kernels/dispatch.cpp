// One table per level, assembled from what each ISA folder contributes.
//
// A level starts as a copy of the one below and lays its own pieces over it, so a missing piece falls back to
// the next lower level. Preference: amx > avx512_bf16 > avx512 > avx2 > scalar. vdpbf16ps does two products
// per lane: twice f32 FMA on Zen 4, but half of it on Sapphire Rapids; there AMX is preferred anyway, so the
// order holds on both. On another architecture the levels of x86 add nothing, so neon follows scalar.
#include "kernels/dispatch.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <iterator>

#include "kernels/cpu_features.h"
#include "kernels/isa_tables.h"
#include "kernels/weights_bf16.h"
#include "liuli/error.h"

namespace liuli::kernels {
namespace {

constexpr size_t kLevels = std::size(kAllIsas);

/// What one level adds; null where it has nothing of its own.
struct Level {
  Isa isa;
  const char* name;
  bool available;
  const WeightTable* weights;
  QuantizeRows quantize_x16;
  const PromptKernels *prompt, *prompt_fixed16, *prompt_int8;
  const AttentionKernels *attention, *attention_f16;
  const GemmKernel* gemm_bf16;
};

std::array<Level, kLevels> make_levels() {
  const CpuFeatures& cpu = cpu_features();
  return {
      {{Isa::scalar, "scalar", true, weights_scalar(), quantize_x16_scalar(), prompt_scalar(),
        prompt_fixed16_scalar(), prompt_int8_scalar(), attention_scalar(), attention_f16_scalar(),
        gemm_bf16_scalar()},
       {Isa::avx2, "avx2", cpu.avx2, weights_avx2(), quantize_x16_avx2(), prompt_avx2(),
        prompt_fixed16_avx2(), prompt_int8_avx2(), attention_avx2(), attention_f16_avx2(), nullptr},
       {Isa::avx512, "avx512", cpu.avx512, weights_avx512(), quantize_x16_avx512(), prompt_avx512(),
        prompt_fixed16_avx512(), prompt_int8_avx512(), attention_avx512(), attention_f16_avx512(), nullptr},
       {Isa::avx512_bf16, "avx512_bf16", cpu.avx512_bf16, weights_avx512_bf16(), nullptr,
        prompt_avx512_bf16(), nullptr, nullptr, attention_avx512_bf16(), nullptr, gemm_bf16_avx512()},
       {Isa::amx, "amx", cpu.amx, nullptr, nullptr, prompt_amx(), nullptr, nullptr, attention_amx(), nullptr,
        gemm_bf16_amx()},
       {Isa::neon, "neon", cpu.neon, weights_neon(), nullptr, prompt_neon(), nullptr, nullptr,
        attention_neon(), attention_f16_neon(), nullptr}}};
}

void lay_weights(const WeightTable& from, Kernels& to) {
  for (int type = 0; type < kDTypeCount; type++)
    if (from.by_type[type].name != nullptr) to.weights[type] = from.by_type[type];
}

CodeAttention attention_codes(Isa isa) {
  switch (isa) {
    case Isa::scalar:
      return attention_codes_scalar();
    case Isa::avx2:
      return attention_codes_avx2();
    case Isa::avx512:
      return attention_codes_avx512();
    case Isa::avx512_bf16:
      return attention_codes_avx512_bf16();
    case Isa::amx:
      return attention_codes_amx();
    case Isa::neon:
      return attention_codes_neon();
  }
  return {};
}

void lay_attention(const Level& level, Kernels& k) {
  if (level.attention != nullptr) k.attention = *level.attention;
  if (level.attention_f16 != nullptr) k.attention_f16 = *level.attention_f16;
  const CodeAttention codes = attention_codes(level.isa);
  if (codes.q8_0 != nullptr) k.attention_q8_0 = *codes.q8_0;
  if (codes.q4_0 != nullptr) k.attention_q4_0 = *codes.q4_0;
  if (const AttentionKernels* attention = attention_f32_highway(level.isa)) k.attention_f32 = *attention;
}

void lay_over(const Level& level, Kernels& k) {
  k.isa = level.isa;
  k.name = level.name;
  if (level.weights != nullptr) lay_weights(*level.weights, k);
  if (level.quantize_x16 != nullptr) k.quantize_x16 = level.quantize_x16;
  if (level.prompt != nullptr) k.prompt = *level.prompt;
  if (level.prompt_fixed16 != nullptr) k.prompt_fixed16 = *level.prompt_fixed16;
  if (level.prompt_int8 != nullptr) k.prompt_int8 = *level.prompt_int8;
  lay_attention(level, k);
  if (const RowKernels* rows = rows_highway(level.isa)) k.rows = *rows;
  if (const GemmKernel* gemm = gemm_highway(level.isa)) k.gemm = *gemm;
  if (const GemmKernel* gemm = gemm_bf16_highway(level.isa)) k.gemm_bf16 = *gemm;
  if (level.gemm_bf16 != nullptr) k.gemm_bf16 = *level.gemm_bf16;
}

/// Tables of all levels, available or not, in Isa's order.
struct Tables {
  std::array<Level, kLevels> levels = make_levels();
  std::array<Kernels, kLevels> kernels{};

  Tables() {
    kernels[0].rows = *rows_scalar();
    kernels[0].attention_f32 = *attention_f32_scalar();
    kernels[0].gemm = *gemm_scalar();
    for (size_t i = 0; i < kernels.size(); i++) {
      if (i > 0) kernels[i] = kernels[i - 1];
      lay_over(levels[i], kernels[i]);
    }
  }
};

const Tables& tables() {
  static const Tables all;
  return all;
}

std::string known_isas() {
  std::string names;
  for (const Level& level : tables().levels)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", level.name);
  return names;
}

const Kernels& best_available() {
  const Tables& t = tables();
  size_t best = 0;
  for (size_t i = 0; i < t.levels.size(); i++)
    if (t.levels[i].available) best = i;
  return t.kernels[best];
}

}  // namespace

std::string available_isas() {
  std::string names;
  for (const Level& level : tables().levels)
    if (level.available) names += fmt::format("{}{}", names.empty() ? "" : ", ", level.name);
  return names;
}

const Kernels* kernels_for(Isa isa) {
  const auto i = static_cast<size_t>(isa);
  return tables().levels[i].available ? &tables().kernels[i] : nullptr;
}

const Kernels& kernels_named(std::string_view name) {
  if (name.empty()) return best_available();
  for (const Level& level : tables().levels) {
    if (name != level.name) continue;
    if (const Kernels* kernels = kernels_for(level.isa)) return *kernels;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("LIULI_ISA is \"{}\", but this machine has only {}", name, available_isas()));
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("LIULI_ISA is \"{}\", known are {}; this machine has {}", name, known_isas(),
                          available_isas()));
}

const Kernels& best_kernels() {
  static const Kernels& chosen = [&]() -> const Kernels& {
    const char* name = std::getenv("LIULI_ISA");
    return kernels_named(name != nullptr ? name : "");
  }();
  return chosen;
}

}  // namespace liuli::kernels
