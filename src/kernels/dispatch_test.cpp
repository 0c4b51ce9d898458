#include "kernels/dispatch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "kernels/cpu_features.h"
#include "kernels/isa_tables.h"
#include "liuli/error.h"

namespace liuli::kernels {
namespace {

constexpr const char* kNames[] = {"scalar", "avx2", "avxvnni", "avx512", "avx512_bf16", "amx", "neon"};

std::string refusal(std::string_view name) {
  try {
    kernels_named(name);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

void expect_complete(const Kernels& k) {
  EXPECT_NE(k.quantize_x16, nullptr);
  EXPECT_NE(k.prompt.multiply, nullptr);
  EXPECT_NE(k.prompt_fixed16.multiply, nullptr);
  EXPECT_NE(k.attention.attend, nullptr);
  EXPECT_NE(k.attention_f16.attend, nullptr);
  EXPECT_NE(k.attention_f32.attend, nullptr);
  EXPECT_NE(k.rows.rms_norm, nullptr);
  for (int type = 0; type < kDTypeCount; type++) {
    if (!dtype_at(type)) continue;
    const WeightKernels& w = k.weights[type];
    SCOPED_TRACE(dtype_info(static_cast<DType>(type)).name);
    EXPECT_NE(w.name, nullptr);
    EXPECT_NE(w.product_f32, nullptr);
    EXPECT_NE(w.expand_bf16, nullptr);
    EXPECT_TRUE(w.integer_decode ? w.decode_x16 != nullptr : w.decode_f32 != nullptr);
  }
}

TEST(Dispatch, EveryLevelOfThisMachineIsComplete) {
  int levels = 0;
  for (Isa isa : kAllIsas) {
    const Kernels* k = kernels_for(isa);
    if (k == nullptr) continue;
    SCOPED_TRACE(k->name);
    levels++;
    EXPECT_EQ(k->isa, isa);
    expect_complete(*k);
  }
  EXPECT_GE(levels, 1);
}

TEST(Dispatch, LevelsFollowTheCpuFeatures) {
  const CpuFeatures& cpu = cpu_features();
  EXPECT_NE(kernels_for(Isa::scalar), nullptr);
  EXPECT_EQ(kernels_for(Isa::avx2) != nullptr, cpu.avx2);
  EXPECT_EQ(kernels_for(Isa::avxvnni) != nullptr, cpu.avxvnni);
  EXPECT_EQ(kernels_for(Isa::avx512) != nullptr, cpu.avx512);
  EXPECT_EQ(kernels_for(Isa::avx512_bf16) != nullptr, cpu.avx512_bf16);
  EXPECT_EQ(kernels_for(Isa::amx) != nullptr, cpu.amx);
  EXPECT_EQ(kernels_for(Isa::neon) != nullptr, cpu.neon);
  EXPECT_TRUE(cpu.avx2 || !cpu.avx512);
  EXPECT_TRUE(cpu.avx2 || !cpu.avxvnni);
  EXPECT_TRUE(cpu.avx512 || !cpu.avx512_bf16);
  EXPECT_TRUE(cpu.avx512_bf16 || !cpu.amx);
}

TEST(Dispatch, AnEmptyNameMeansTheBestLevel) {
  const Kernels* best = nullptr;
  for (Isa isa : kAllIsas)
    if (const Kernels* k = kernels_for(isa)) best = k;
  EXPECT_EQ(&kernels_named(""), best);
}

TEST(Dispatch, ANameChoosesItsLevelOrIsRefused) {
  for (size_t i = 0; i < std::size(kAllIsas); i++) {
    if (const Kernels* k = kernels_for(kAllIsas[i])) {
      EXPECT_EQ(&kernels_named(kNames[i]), k);
      EXPECT_STREQ(k->name, kNames[i]);
    } else {
      EXPECT_EQ(refusal(kNames[i]), std::string("LIULI_ISA is \"") + kNames[i] +
                                        "\", but this machine has only " + available_isas());
    }
  }
}

TEST(Dispatch, AnUnknownNameIsRefusedWithWhatThereIs) {
  for (const char* name : {"avx3", "AVX2", "scalar ", "amx_int8"}) {
    const std::string message = refusal(name);
    EXPECT_NE(message.find(std::string("\"") + name + "\""), std::string::npos) << message;
    EXPECT_NE(message.find("known are scalar, avx2, avxvnni, avx512, avx512_bf16, amx, neon"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("this machine has " + available_isas()), std::string::npos) << message;
  }
}

TEST(Dispatch, TheScalarLevelUsesNoX86Rows) {
  const RowKernels* portable = rows_highway(Isa::scalar);  // other architectures have one there
  const RowKernels& rows = kernels_for(Isa::scalar)->rows;
  EXPECT_EQ(rows.rms_norm, (portable != nullptr ? portable : rows_scalar())->rms_norm);
}

TEST(Dispatch, TheProcessFollowsItsEnvironment) {
  const char* wanted = std::getenv("LIULI_ISA");
  EXPECT_EQ(&best_kernels(), &kernels_named(wanted != nullptr ? wanted : ""));
  EXPECT_EQ(&best_kernels(), &best_kernels());
}

}  // namespace
}  // namespace liuli::kernels
