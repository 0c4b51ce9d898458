// Memory for numbers: one owned aligned block, and a bump allocator for the scratch of a step.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace liuli {

/// An owned block of zeroed memory, aligned to 64 bytes; from kHugeThreshold on it comes straight from the
/// system, aligned to 2 MiB and advised to use huge pages (its zeros then cost nothing until touched).
/// Movable, not copyable.
class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kHugePage = size_t{2} << 20;
  static constexpr size_t kHugeThreshold = size_t{4} << 20;

  AlignedBuffer() = default;
  /// Throws Error out_of_memory naming the size.
  explicit AlignedBuffer(size_t bytes);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }  ///< in bytes, as asked for
  bool empty() const { return size_ == 0; }

  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

/// Scratch memory handed out by moving a pointer, given back to a mark. Memory is kept until the arena dies,
/// so a step that repeats its requests allocates nothing. For one thread: the caller takes what a job needs
/// before it forks.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// n values, aligned to 64 bytes, contents undefined, valid until an earlier mark is released.
  /// Throws Error out_of_memory naming the size.
  template <class T>
  T* array(int64_t n) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    static_assert(alignof(T) <= AlignedBuffer::kAlignment);
    return static_cast<T*>(allocate(n, sizeof(T)));
  }
  float* floats(int64_t n) { return array<float>(n); }

  /// A place to go back to: everything taken after mark() is given back by release(). Marks nest.
  struct Mark {
    size_t chunk = 0, used = 0;
  };
  Mark mark() const { return {chunk_, used_}; }
  void release(Mark mark);

  /// Gives back at the end of a block what was taken inside it.
  class Scope {
   public:
    explicit Scope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
    ~Scope() { arena_.release(mark_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    Mark mark_;
  };

  size_t capacity() const;  ///< bytes held, in use or not

 private:
  void* allocate(int64_t n, size_t size);

  std::vector<AlignedBuffer> chunks_;
  size_t chunk_ = 0, used_ = 0;  ///< the chunk being filled and how far it is filled
};

}  // namespace liuli
