// FP8 weights as DeepSeek and Qwen publish them: `<name>` F8_E4M3 [R, C] beside `<name>_scale_inv` F32
// [⌈R/128⌉, ⌈C/128⌉]. W[r, c] = code[r, c] · scale_inv[⌊r/128⌋, ⌊c/128⌋]: it multiplies, whatever its name says.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "formats/safetensors.h"
#include "formats/weight_source.h"

namespace liuli {

constexpr std::string_view kScaleSuffix = "_scale_inv";

/// Whether config.json announces FP8 in blocks of 128 × 128.
///
/// Errors: unsupported for every other quantization_config: packed integers would pass for weights.
bool announces_fp8_blocks(const std::string& path, const Metadata& config);

/// A weight and its scales, which must outlive this.
struct Fp8Matrix {
  const SafetensorsFile::Tensor* codes;
  const SafetensorsFile::Tensor* scales;  ///< null: not in the files
};

/// What is wrong with the pair, for SetAside; nothing if it can be built.
std::optional<std::string> fp8_problem(const Fp8Matrix& matrix);

/// F8_E4M3_B128, which needs rows of whole blocks; else F32.
DType fp8_type(const Fp8Matrix& matrix);

/// The rows of that type, in memory of their own: the codes as they are, each row's scales between them.
/// Errors: out_of_memory.
std::shared_ptr<const uint8_t> build_fp8_rows(const Fp8Matrix& matrix);

}  // namespace liuli
