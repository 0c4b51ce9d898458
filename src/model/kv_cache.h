// Keys and values of a sequence, in pages of 64 positions.
#pragma once
#include <cstdint>
#include <vector>

#include "core/arena.h"
#include "kernels/kernels.h"
#include "ops/context.h"

namespace liuli {

/// What one position of the cache looks like. One layer is enough for a model that reads a text in one pass: each layer
/// then writes over the one before.
struct CacheShape {
  int64_t n_layers = 0, n_kv_heads = 0;
  int head_dim = 0, value_dim = 0;
  /// Latent attention: the value is the key's first value_dim entries, kept once.
  bool shared_values = false;

  kernels::PageShape page() const { return {head_dim, value_dim, shared_values}; }
};

/// One sequence's keys and values: grows by pages, can be rolled back, remembers the class each position was
/// computed in.
class KvCache {
 public:
  KvCache(CacheShape shape, const kernels::AttentionKernels& kernels);

  const CacheShape& shape() const { return shape_; }
  int length() const { return static_cast<int>(classes_.size()); }
  /// Makes room for n more positions of one class; their values are written by append(). Errors:
  /// out_of_memory.
  void extend(int n, ProductClass product_class);
  /// Forgets every position from `length` on.
  void truncate(int length);

  /// Becomes (a cache of one layer) a copy of `trunk`'s layer up to its length, of which positions before `first` will
  /// not be written: whole pages of them stay the trunk's. The first call makes room (throws out_of_memory), the second
  /// copies; it may run on several threads for several caches.
  void branch(const KvCache& trunk, int64_t layer);
  void copy_branch(const KvCache& trunk, int64_t layer, int first);

  /// v is not looked at where values are shared.
  void append(int64_t layer, int64_t kv_head, int position, const float* k, const float* v);
  /// One position as stored.
  void read(int64_t layer, int64_t kv_head, int position, float* k, float* v) const;
  /// The pages of one head, in order of position.
  const uint8_t* const* pages(int64_t layer, int64_t kv_head) const {
    return table_[index(layer, kv_head)].data();
  }

  ProductClass class_at(int position) const { return classes_[static_cast<size_t>(position)]; }
  const kernels::AttentionKernels& kernels() const { return *kernels_; }
  size_t bytes() const;
  static size_t bytes_per_page(const CacheShape& shape, const kernels::AttentionKernels& kernels);

 private:
  size_t index(int64_t layer, int64_t kv_head) const {
    return static_cast<size_t>((shape_.n_layers == 1 ? 0 : layer) * shape_.n_kv_heads + kv_head);
  }

  CacheShape shape_;
  const kernels::AttentionKernels* kernels_;
  size_t page_bytes_;
  std::vector<AlignedBuffer> pages_;          ///< one per 64 positions: every layer, every head
  std::vector<std::vector<uint8_t*>> table_;  ///< [layer · kv_head][page]
  std::vector<ProductClass> classes_;
};

}  // namespace liuli
