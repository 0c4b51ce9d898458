// What a quantiser reads: named tensors whose rows can be decoded, and the keys of the file to come.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "convert/type_mix.h"
#include "formats/gguf_writer.h"
#include "formats/weight_source.h"

namespace liuli {

/// One tensor under its GGUF name and in GGUF's arrangement of rows.
struct SourceTensor {
  std::string name;
  DType type;
  std::vector<int64_t> shape;      ///< last index contiguous
  const uint8_t* bytes = nullptr;  ///< as stored, where that is what GGUF holds too; else null
  /// Decodes rows [first, first + n) (a row = the last index's run; the others flattened). From several threads.
  std::function<void(int64_t first, int64_t n, float* out)> decode;
  std::function<void()> give_back;  ///< a hint that the tensor is done; may be empty

  int64_t columns() const { return shape.back(); }
  int64_t elements() const;
  int64_t rows() const { return columns() == 0 ? 0 : elements() / columns(); }
  int64_t stored_bytes() const { return row_bytes(type, elements()); }
};

struct QuantizeSource {
  std::string path;  ///< for messages
  GgufKeys keys;
  std::vector<SourceTensor> tensors;
  MixModel model;
  std::shared_ptr<const WeightSource> weights;  ///< keeps what decode() reads alive
  std::vector<std::string> warnings;            ///< what a user should know about what is left out
};

/// A GGUF file as it is, parts joined; or a folder, turned into GGUF's terms (folder_source).
/// tokenizer: false leaves out a folder's tokenizer; a GGUF file keeps its own.
/// Errors: those of open_weights and folder_source.
QuantizeSource open_quantize_source(const std::string& path, bool tokenizer = true);

}  // namespace liuli
