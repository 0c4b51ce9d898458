// One table per level, assembled from what each ISA folder contributes.
//
// A level starts as a copy of the one below that the machine has and lays its own pieces over it, so a missing piece falls
// back to the next lower level. Preference: amx > avx512_bf16 > avx512 > avxvnni > avx2 > scalar. vdpbf16ps does two products
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

struct Level {
  Isa isa;
  const char* name;
  bool available;
};

/// All levels, in Isa's order.
std::array<Level, kLevels> make_levels() {
  const CpuFeatures& cpu = cpu_features();
  return {{{Isa::scalar, "scalar", true},
           {Isa::avx2, "avx2", cpu.avx2},
           {Isa::avxvnni, "avxvnni", cpu.avxvnni},
           {Isa::avx512, "avx512", cpu.avx512},
           {Isa::avx512_bf16, "avx512_bf16", cpu.avx512_bf16},
           {Isa::amx, "amx", cpu.amx},
           {Isa::neon, "neon", cpu.neon}}};
}

/// What one level adds; null where it has nothing of its own.
struct Pieces {
  const WeightTable* weights = nullptr;
  QuantizeRows quantize_x16 = nullptr;
  const PromptKernels *prompt = nullptr, *prompt_fixed16 = nullptr, *prompt_int8 = nullptr;
  const AttentionKernels *attention = nullptr, *attention_f16 = nullptr;
  CodeAttention attention_codes = {};
  const GemmKernel* gemm_bf16 = nullptr;
};

/// For levels of this machine only: the functions that name the pieces are compiled for their level, too.
Pieces pieces_of(Isa isa) {
  switch (isa) {
    case Isa::scalar:
      return {weights_scalar(),        quantize_x16_scalar(),    prompt_scalar(),
              prompt_fixed16_scalar(), prompt_int8_scalar(),     attention_scalar(),
              attention_f16_scalar(),  attention_codes_scalar(), gemm_bf16_scalar()};
    case Isa::avx2:
      return {.weights = weights_avx2(),
              .quantize_x16 = quantize_x16_avx2(),
              .prompt = prompt_avx2(),
              .prompt_fixed16 = prompt_fixed16_avx2(),
              .prompt_int8 = prompt_int8_avx2(),
              .attention = attention_avx2(),
              .attention_f16 = attention_f16_avx2(),
              .attention_codes = attention_codes_avx2()};
    case Isa::avxvnni:
      return {.weights = weights_avxvnni(),
              .prompt_fixed16 = prompt_fixed16_avxvnni(),
              .prompt_int8 = prompt_int8_avxvnni()};
    case Isa::avx512:
      return {.weights = weights_avx512(),
              .quantize_x16 = quantize_x16_avx512(),
              .prompt = prompt_avx512(),
              .prompt_fixed16 = prompt_fixed16_avx512(),
              .prompt_int8 = prompt_int8_avx512(),
              .attention = attention_avx512(),
              .attention_f16 = attention_f16_avx512(),
              .attention_codes = attention_codes_avx512()};
    case Isa::avx512_bf16:
      return {.weights = weights_avx512_bf16(),
              .prompt = prompt_avx512_bf16(),
              .attention = attention_avx512_bf16(),
              .attention_codes = attention_codes_avx512_bf16(),
              .gemm_bf16 = gemm_bf16_avx512()};
    case Isa::amx:
      return {.prompt = prompt_amx(),
              .attention = attention_amx(),
              .attention_codes = attention_codes_amx(),
              .gemm_bf16 = gemm_bf16_amx()};
    case Isa::neon:
      return {.weights = weights_neon(),
              .prompt = prompt_neon(),
              .attention = attention_neon(),
              .attention_f16 = attention_f16_neon(),
              .attention_codes = attention_codes_neon()};
  }
  return {};
}

void lay_weights(const WeightTable& from, Kernels& to) {
  for (int type = 0; type < kDTypeCount; type++)
    if (from.by_type[type].name != nullptr) to.weights[type] = from.by_type[type];
}

template <class T>
void lay(const T* piece, T& over) {
  if (piece != nullptr) over = *piece;
}

void lay_over(const Level& level, Kernels& k) {
  const Pieces pieces = pieces_of(level.isa);
  k.isa = level.isa;
  k.name = level.name;
  if (pieces.weights != nullptr) lay_weights(*pieces.weights, k);
  if (pieces.quantize_x16 != nullptr) k.quantize_x16 = pieces.quantize_x16;
  lay(pieces.prompt, k.prompt);
  lay(pieces.prompt_fixed16, k.prompt_fixed16);
  lay(pieces.prompt_int8, k.prompt_int8);
  lay(pieces.attention, k.attention);
  lay(pieces.attention_f16, k.attention_f16);
  lay(pieces.attention_codes.q8_0, k.attention_q8_0);
  lay(pieces.attention_codes.q4_0, k.attention_q4_0);
  lay(attention_f32_highway(level.isa), k.attention_f32);
  lay(rows_highway(level.isa), k.rows);
  lay(gemm_highway(level.isa), k.gemm);
  lay(gemm_bf16_highway(level.isa), k.gemm_bf16);
  lay(pieces.gemm_bf16, k.gemm_bf16);
}

/// A table per level of this machine, in Isa's order; the others are empty.
struct Tables {
  std::array<Level, kLevels> levels = make_levels();
  std::array<Kernels, kLevels> kernels{};

  Tables() {
    kernels[0].rows = *rows_scalar();
    kernels[0].attention_f32 = *attention_f32_scalar();
    kernels[0].gemm = *gemm_scalar();
    const Kernels* below = &kernels[0];
    for (size_t i = 0; i < kernels.size(); i++) {
      if (!levels[i].available) continue;
      if (i > 0) kernels[i] = *below;
      lay_over(levels[i], kernels[i]);
      below = &kernels[i];
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
