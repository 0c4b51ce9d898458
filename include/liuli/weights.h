// The weights of a loaded model, by name.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace liuli {

/// One matrix [d_out, d_in] (y = W x), norm weight or bias [n], as the block uses it: rows of a fused or interleaved file
/// tensor already in their own place.
struct WeightInfo {
  std::string name;  ///< "blocks.3.attn.q.weight", "blocks.3.ln1.weight", "embed.weight", "unembed.weight"
  std::vector<int64_t> shape;
  std::string tensor;  ///< of the file; "" for vectors
  std::string type;    ///< as stored; "F32" for vectors
};

/// The same, decoded: values exactly as the stored type means them, last index fastest.
struct WeightValues {
  WeightInfo info;
  std::vector<float> values;
};

}  // namespace liuli
