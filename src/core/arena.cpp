#include "core/arena.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "core/check.h"
#include "liuli/error.h"

namespace liuli {
namespace {

constexpr size_t kFirstChunk = size_t{1} << 20;

bool round_up(size_t bytes, size_t unit, size_t& rounded) {
  if (bytes > std::numeric_limits<size_t>::max() - (unit - 1)) return false;
  rounded = (bytes + unit - 1) / unit * unit;
  return true;
}

[[noreturn]] void throw_out_of_memory(size_t bytes) {
  throw Error(ErrorCode::out_of_memory, fmt::format("out of memory: the system refused {} bytes ({:.1f} MiB)",
                                                    bytes, bytes / 1048576.0));
}

/// Maps whole huge pages: one page too many, then cuts off what lies before and behind the aligned part.
uint8_t* map_huge(size_t bytes) {
  constexpr size_t page = AlignedBuffer::kHugePage;
  size_t length = 0;
  if (!round_up(bytes, page, length) || length > std::numeric_limits<size_t>::max() - page) return nullptr;
  void* mapped = mmap(nullptr, length + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* base = static_cast<uint8_t*>(mapped);
  const size_t before = (page - reinterpret_cast<uintptr_t>(base) % page) % page;
  if (before > 0) munmap(base, before);
  munmap(base + before + length, page - before);
  madvise(base + before, length, MADV_HUGEPAGE);  // only advice: a system without huge pages still runs
  return base + before;
}

uint8_t* allocate_small(size_t bytes) {
  size_t length = 0;
  if (!round_up(bytes, AlignedBuffer::kAlignment, length)) return nullptr;
  void* memory = std::aligned_alloc(AlignedBuffer::kAlignment, length);
  if (memory != nullptr) std::memset(memory, 0, length);
  return static_cast<uint8_t*>(memory);
}

void free_block(uint8_t* data, size_t bytes) {
  if (bytes >= AlignedBuffer::kHugeThreshold) {
    constexpr size_t page = AlignedBuffer::kHugePage;
    munmap(data, (bytes + page - 1) / page * page);
  } else {
    std::free(data);
  }
}

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  data_ = bytes >= kHugeThreshold ? map_huge(bytes) : allocate_small(bytes);
  if (data_ == nullptr) throw_out_of_memory(bytes);
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) free_block(data_, size_);
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void Arena::release(Mark mark) {
  LIULI_CHECK(mark.chunk < chunk_ || (mark.chunk == chunk_ && mark.used <= used_));
  chunk_ = mark.chunk;
  used_ = mark.used;
}

size_t Arena::capacity() const {
  size_t bytes = 0;
  for (const AlignedBuffer& chunk : chunks_) bytes += chunk.size();
  return bytes;
}

void* Arena::allocate(int64_t n, size_t size) {
  LIULI_CHECK(n >= 0);
  const auto count = static_cast<size_t>(n);
  size_t bytes = 0;
  if (count > std::numeric_limits<size_t>::max() / size)
    throw_out_of_memory(std::numeric_limits<size_t>::max());
  // An empty array still gets an address of its own.
  if (!round_up(std::max(count * size, size_t{1}), AlignedBuffer::kAlignment, bytes))
    throw_out_of_memory(count * size);
  size_t chunk = chunk_, used = used_;
  while (chunk < chunks_.size() && chunks_[chunk].size() - used < bytes) chunk++, used = 0;
  // Chunks double what is there, so few are needed and passing over one that is too small wastes at most
  // half.
  if (chunk == chunks_.size()) chunks_.emplace_back(std::max({bytes, capacity(), kFirstChunk}));
  chunk_ = chunk;
  used_ = used + bytes;
  return chunks_[chunk].data() + used;
}

}  // namespace liuli
