#include "arrays.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <deque>
#include <mutex>

#include "liuli/error.h"

namespace liuli::python {

namespace nb = nanobind;

namespace {

constexpr size_t kLargePage = size_t{2} << 20, kSharedBlock = size_t{16} << 20,
                 kLargestShared = size_t{4} << 20;

constexpr size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

template <class T>
nb::capsule owner_of(std::unique_ptr<T> kept) {
  nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<T*>(p); });
  kept.release();
  return owner;
}

Array array_over(const float* data, const std::vector<int64_t>& shape, const nb::capsule& owner) {
  const std::vector<size_t> sizes(shape.begin(), shape.end());
  return Array(data, sizes.size(), sizes.data(), owner);
}

}  // namespace

namespace {

// Whole pages from the system, aligned to large ones.
struct Pages {
  void* mapped = nullptr;
  size_t size = 0;
  uint8_t* data() const {
    const auto address = reinterpret_cast<uintptr_t>(mapped);
    return static_cast<uint8_t*>(mapped) + (rounded_up(address, kLargePage) - address);
  }
};

Pages map_pages(size_t size) {
  const Pages pages{mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), size};
  if (pages.mapped == MAP_FAILED)
    throw Error(ErrorCode::out_of_memory, fmt::format("out of memory: the system refused {} bytes", size));
  // Only advice: a system without large pages still runs.
  madvise(pages.data(), size - kLargePage, MADV_HUGEPAGE);
  return pages;
}

// Blocks that wait for their next use, the longest-waiting first.
class IdleBlocks {
 public:
  Pages take(size_t size) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(idle_.rbegin(), idle_.rend(), [&](const Pages& pages) { return pages.size == size; });
    if (found == idle_.rend()) return map_pages(size);
    const Pages pages = *found;
    total_ -= size;
    idle_.erase(std::next(found).base());
    return pages;
  }
  void give_back(const Pages& pages) {
    const std::lock_guard lock(mutex_);
    madvise(pages.data(), pages.size - kLargePage, MADV_FREE);  // the system may have them if it needs them
    idle_.push_back(pages);
    total_ += pages.size;
    for (; total_ > kMostIdle; idle_.pop_front()) {
      total_ -= idle_.front().size;
      munmap(idle_.front().mapped, idle_.front().size);
    }
  }

 private:
  static constexpr size_t kMostIdle = size_t{4} << 30;
  std::mutex mutex_;
  std::deque<Pages> idle_;
  size_t total_ = 0;
};

// Never destroyed: arrays may outlive everything.
IdleBlocks& idle_blocks() {
  static auto* blocks = new IdleBlocks;
  return *blocks;
}

}  // namespace

struct ArrayMemory::Block {
  explicit Block(size_t bytes)
      : pages(idle_blocks().take(rounded_up(bytes, kLargePage) + kLargePage)), data(pages.data()) {}
  ~Block() { idle_blocks().give_back(pages); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Pages pages;
  uint8_t* data;
};

std::shared_ptr<float> ArrayMemory::floats(int64_t n) {
  const size_t bytes = rounded_up(static_cast<size_t>(n) * sizeof(float), 64);
  if (bytes > kLargestShared) {
    auto own = std::make_shared<Block>(bytes);
    return {own, reinterpret_cast<float*>(own->data)};
  }
  if (block_ == nullptr || used_ + bytes > kSharedBlock) {
    block_ = std::make_shared<Block>(kSharedBlock);
    used_ = 0;
  }
  auto* place = reinterpret_cast<float*>(block_->data + used_);
  used_ += bytes;
  return {block_, place};
}

Array owned_array(std::vector<float>&& values, const std::vector<int64_t>& shape) {
  auto kept = std::make_unique<std::vector<float>>(std::move(values));
  const float* data = kept->data();
  return array_over(data, shape, owner_of(std::move(kept)));
}

Array shared_array(std::shared_ptr<float> values, const std::vector<int64_t>& shape) {
  const float* data = values.get();
  return array_over(data, shape, owner_of(std::make_unique<std::shared_ptr<float>>(std::move(values))));
}

}  // namespace liuli::python
