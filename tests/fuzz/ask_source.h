// Asks a source everything it can be asked: for the fuzz targets of file readers.
#pragma once
#include <algorithm>
#include <array>
#include <string>

#include "formats/weight_source.h"
#include "kernels/kernels.h"
#include "liuli/error.h"

namespace liuli {

/// Getters may refuse the stored type; anything else they throw is a bug.
template <class F>
void ask(F&& getter) {
  try {
    getter();
  } catch (const Error&) {
  }
}

inline void ask_everything(const Metadata& m) {
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
inline void decode_row_in_pieces(DType type, const uint8_t* row, int64_t n) {
  constexpr int64_t kPiece = 4096;  // a multiple of every block
  std::array<float, kPiece> values;
  for (int64_t at = 0; at < n; at += kPiece)
    kernels::decode_row(type, row + row_bytes(type, at), std::min(kPiece, n - at), values.data());
}

/// The first and the last row of every tensor, found again by its name.
inline void read_tensors(const WeightSource& source) {
  for (const TensorInfo& tensor : source.tensors()) {
    if (source.find(tensor.name) != &tensor) __builtin_trap();
    if (tensor.elements() == 0) continue;
    const auto bytes = source.bytes_of(tensor);
    const int64_t n = tensor.shape.empty() ? 1 : tensor.shape.back(), row = row_bytes(tensor.type, n);
    decode_row_in_pieces(tensor.type, bytes.get(), n);
    decode_row_in_pieces(tensor.type, bytes.get() + tensor.bytes - row, n);
    source.give_back(tensor);
  }
}

}  // namespace liuli
