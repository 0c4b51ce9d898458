#include "model/kv_cache.h"

#include <cstring>

#include "core/check.h"
#include "core/rows.h"

namespace liuli {

using kernels::kPagePositions;

namespace {
// Pages lie one after another in a buffer: each starts on a line of its own.
size_t head_page_bytes(const CacheShape& shape, const kernels::AttentionKernels& kernels) {
  return static_cast<size_t>(round_up(static_cast<int64_t>(kernels.page_bytes(shape.page())), 64));
}
}  // namespace

KvCache::KvCache(CacheShape shape, const kernels::AttentionKernels& kernels)
    : shape_(shape),
      kernels_(&kernels),
      page_bytes_(head_page_bytes(shape, kernels)),
      table_(static_cast<size_t>(shape.n_layers * shape.n_kv_heads)) {}

size_t KvCache::bytes_per_page(const CacheShape& shape, const kernels::AttentionKernels& kernels) {
  return head_page_bytes(shape, kernels) * static_cast<size_t>(shape.n_layers * shape.n_kv_heads);
}

void KvCache::extend(int n, ProductClass product_class) {
  const size_t pages = static_cast<size_t>((length() + n + kPagePositions - 1) / kPagePositions);
  while (pages_.size() < pages) {
    pages_.emplace_back(page_bytes_ * table_.size());
    for (size_t i = 0; i < table_.size(); i++) table_[i].push_back(pages_.back().data() + i * page_bytes_);
  }
  classes_.resize(classes_.size() + static_cast<size_t>(n), product_class);
}

void KvCache::truncate(int length) {
  LIULI_CHECK(length >= 0 && length <= this->length());
  const size_t pages = static_cast<size_t>((length + kPagePositions - 1) / kPagePositions);
  pages_.resize(pages);
  for (auto& head : table_) head.resize(pages);
  // A masked position is multiplied by zero: what lies there must be finite, so the tail of the last page is
  // cleared.
  const std::vector<float> zero(static_cast<size_t>(std::max(shape_.head_dim, shape_.value_dim)), 0.0f);
  const int end = std::min(this->length(), static_cast<int>(pages) * kPagePositions);
  for (int position = length; position < end; position++)
    for (int64_t layer = 0; layer < shape_.n_layers; layer++)
      for (int64_t head = 0; head < shape_.n_kv_heads; head++)
        append(layer, head, position, zero.data(), zero.data());
  classes_.resize(static_cast<size_t>(length));
}

void KvCache::branch(const KvCache& trunk, int64_t layer) {
  LIULI_CHECK(shape_.n_layers == 1 && kernels_ == trunk.kernels_ && page_bytes_ == trunk.page_bytes_ &&
              table_.size() == static_cast<size_t>(trunk.shape_.n_kv_heads) && layer < trunk.shape_.n_layers);
  while (pages_.size() < trunk.pages_.size()) pages_.emplace_back(page_bytes_ * table_.size());
  for (auto& head : table_) head.resize(pages_.size());
  classes_ = trunk.classes_;
}

void KvCache::copy_branch(const KvCache& trunk, int64_t layer, int first) {
  const size_t n_pages = trunk.pages_.size(), shared = static_cast<size_t>(first / kPagePositions);
  for (size_t page = 0; page < n_pages; page++) {
    for (size_t head = 0; head < table_.size(); head++)
      table_[head][page] = page < shared ? trunk.table_[trunk.index(layer, static_cast<int64_t>(head))][page]
                                         : pages_[page].data() + head * page_bytes_;
    if (page >= shared)  // the heads of a layer lie one after another
      std::memcpy(pages_[page].data(), trunk.table_[trunk.index(layer, 0)][page],
                  page_bytes_ * table_.size());
  }
}

void KvCache::append(int64_t layer, int64_t kv_head, int position, const float* k, const float* v) {
  LIULI_CHECK(position >= 0 && position < length());
  kernels_->append(table_[index(layer, kv_head)][static_cast<size_t>(position / kPagePositions)],
                   position % kPagePositions, k, v, shape_.page());
}

void KvCache::read(int64_t layer, int64_t kv_head, int position, float* k, float* v) const {
  kernels_->read(pages(layer, kv_head)[position / kPagePositions], position % kPagePositions, k, v,
                 shape_.page());
}

size_t KvCache::bytes() const { return pages_.size() * page_bytes_ * table_.size(); }

}  // namespace liuli
