#include "formats/mapped_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "liuli/error.h"

namespace liuli {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

[[noreturn]] void fail(const std::string& path, ErrorCode code, const std::string& reason) {
  throw Error(code, fmt::format("{}: {}", path, reason));
}

[[noreturn]] void fail_with_errno(const std::string& path, const char* action) {
  const int error = errno;
  const bool missing = error == ENOENT || error == ENOTDIR;
  fail(path, missing ? ErrorCode::not_found : ErrorCode::io_error,
       fmt::format("cannot {} the file: {}", action, std::strerror(error)));
}

/// O_NONBLOCK: opening a pipe that nobody writes to would otherwise wait for ever, before fstat can refuse
/// it.
struct stat checked_status(const std::string& path, const Descriptor& file) {
  struct stat status {};
  if (::fstat(file.value(), &status) != 0) fail_with_errno(path, "inspect");
  if (S_ISDIR(status.st_mode)) fail(path, ErrorCode::invalid_argument, "is a directory, not a file");
  if (!S_ISREG(status.st_mode)) fail(path, ErrorCode::invalid_argument, "is not a regular file");
  if (status.st_size == 0) fail(path, ErrorCode::corrupt_file, "the file is empty (0 bytes)");
  return status;
}

}  // namespace

FileBytes map_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.value() < 0) fail_with_errno(path, "open");
  const struct stat status = checked_status(path, file);
  const auto size = static_cast<size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value(), 0);
  if (address == MAP_FAILED) fail_with_errno(path, "map");
  std::shared_ptr<const void> owner(address, [size](void* mapping) { ::munmap(mapping, size); });
  const int64_t modified_ns = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  return {static_cast<const uint8_t*>(address), size, std::move(owner), true, modified_ns};
}

void drop_resident_pages(const FileBytes& file, const uint8_t* data, size_t size) {
  if (!file.mapped) return;
  // Touching a page maps the 64 KiB around it: without them 300 tensors would leave up to 60 KiB each.
  constexpr uintptr_t kFaultAround = 64 << 10;
  const auto first = reinterpret_cast<uintptr_t>(file.data), at = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = std::max(first, at / kFaultAround * kFaultAround);
  const uintptr_t end =
      std::min(first + file.size, (at + size + kFaultAround - 1) / kFaultAround * kFaultAround);
  // The mapping is private and never written, so dropped pages are read from the file again when touched.
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void prefer_huge_pages(const FileBytes& file) {
  if (file.mapped) ::madvise(const_cast<uint8_t*>(file.data), file.size, MADV_HUGEPAGE);
}

bool populate_pages(const FileBytes& file, const uint8_t* data, size_t size) noexcept {
  constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, which older C libraries do not name
  if (!file.mapped) return true;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)), at = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = at / page * page;
  return ::madvise(reinterpret_cast<void*>(begin), at + size - begin, kPopulateRead) == 0 || errno != EFAULT;
}

}  // namespace liuli
