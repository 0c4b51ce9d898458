// Fuzz target of the GGUF reader: any bytes must give a source whose every answer can be used, or an Error.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "formats/gguf.h"
#include "kernels/kernels.h"
#include "liuli/error.h"

namespace {

using namespace liuli;

/// Getters may refuse the stored type; anything else they throw is a bug.
template <class F>
void ask(F&& getter) {
  try {
    getter();
  } catch (const Error&) {
  }
}

void ask_everything(const Metadata& m) {
  for (const std::string& key : m.keys()) {
    ask([&] { (void)m.integer(key); });
    ask([&] { (void)m.number(key); });
    ask([&] { (void)m.boolean(key); });
    ask([&] { (void)m.text(key); });
    ask([&] { (void)m.integers(key); });
    ask([&] { (void)m.numbers(key); });
    ask([&] { (void)m.booleans(key); });
    ask([&] { (void)m.texts(key); });
    (void)m.type_name(key);
    (void)m.json(key, 4);
  }
}

/// In pieces: a row of a 1.5-bit type is twenty times its bytes as f32.
void decode_first_row(const TensorInfo& tensor) {
  constexpr int64_t kPiece = 4096;  // a multiple of every block
  std::array<float, kPiece> values;
  const int64_t n = tensor.shape.back();
  for (int64_t at = 0; at < n; at += kPiece)
    kernels::decode_row(tensor.type, tensor.data + row_bytes(tensor.type, at), std::min(kPiece, n - at),
                        values.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto source = open_gguf_bytes("input", FileBytes{data, size, nullptr});
    ask_everything(source->metadata());
    for (const TensorInfo& tensor : source->tensors()) {
      decode_first_row(tensor);
      if (source->find(tensor.name) != &tensor) __builtin_trap();
    }
  } catch (const Error&) {
    // The reader's way to say no.
  }
  return 0;
}
