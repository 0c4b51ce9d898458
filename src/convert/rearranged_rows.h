// Rows of a GGUF tensor, decoded from wherever a folder keeps their values.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "formats/weight_source.h"

namespace liuli {

/// What is expensive to build and needed for a run of neighbouring rows: the last few built, by number. From several
/// threads; who asks for the same one waits. Whoever still holds an older one keeps it.
template <class T>
class Recent {
 public:
  using Built = std::shared_ptr<const T>;

  Built get(int64_t number, const std::function<Built()>& build) {
    const std::lock_guard lock(mutex_);
    Built& place = kept_[number];
    if (place == nullptr) place = build();
    Built built = place;
    // Rows come in rising order; threads are at most a piece apart.
    constexpr size_t kKept = 2;
    while (kept_.size() > kKept)
      kept_.erase(kept_.begin()->first == number ? std::prev(kept_.end()) : kept_.begin());
    return built;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    kept_.clear();
  }

 private:
  std::mutex mutex_;
  std::map<int64_t, Built> kept_;
};

/// What a GGUF tensor is made of.
struct Arrangement {
  std::vector<const TensorInfo*>
      parts;  ///< one, or a layer's experts: rows of equal shape one behind the other
  /// The row of its part that is row `row` of the GGUF tensor's same part; empty: the same. Of a vector, its values.
  std::function<int64_t(int64_t row)> stored_row;
  bool plus_one = false;  ///< 1 is added to every value
  /// Not 0: the part is cut into blocks of so many rows, one every `block_step`, and each block's columns are rows of
  /// the GGUF tensor.
  int64_t block_rows = 0, block_step = 0;
};

class RearrangedRows {
 public:
  /// columns: of the GGUF tensor.
  RearrangedRows(std::shared_ptr<const WeightSource> source, Arrangement arrangement, int64_t columns);

  /// The bytes, where the folder holds exactly those of the GGUF tensor; else null.
  const uint8_t* bytes() const;
  void decode(int64_t first, int64_t n, float* out) const;
  void give_back() const;

 private:
  using Rows = std::shared_ptr<const uint8_t>;

  bool is_vector() const { return part(0).shape.size() == 1; }
  const TensorInfo& part(int64_t i) const { return *arrangement_.parts[static_cast<size_t>(i)]; }
  Rows stored(int64_t part) const;
  void decode_stored(int64_t part, int64_t row, float* out) const;
  void decode_row(int64_t row, float* out) const;
  void decode_vector(float* out) const;
  void decode_column(int64_t row, float* out) const;
  std::vector<float> turned_block(int64_t block) const;

  std::shared_ptr<const WeightSource> source_;
  Arrangement arrangement_;
  int64_t columns_, part_rows_ = 1;
  mutable Recent<uint8_t> built_;              ///< rows that the source has to build
  mutable Recent<std::vector<float>> turned_;  ///< blocks, their columns one behind the other
};

}  // namespace liuli
