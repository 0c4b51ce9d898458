#include "core/output_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "core/check.h"
#include "liuli/error.h"

namespace liuli {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;

/// Renaming over a symbolic link would replace the link, so the file it points to is the target.
std::string resolve_links(const std::string& path) {
  char resolved[PATH_MAX];
  return ::realpath(path.c_str(), resolved) != nullptr ? resolved : path;
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path) {
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail("open for writing", EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail("open for writing", errno);
  } else {
    target_ = exists ? resolve_links(path) : path;
    open_temporary(exists ? status.st_mode & 0777 : 0);
  }
  buffer_.reserve(kBufferBytes);
}

OutputFile::~OutputFile() { discard(); }

/// The name carries process and count, so that two writers of one target do not meet; O_EXCL makes sure.
/// mkstemp would give mode 0600: here a new file gets what the umask allows, a replaced one keeps its mode.
void OutputFile::open_temporary(unsigned mode) {
  static std::atomic<unsigned> count{0};
  temporary_ = fmt::format("{}.{}-{}.part", target_, ::getpid(), count++);
  descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    const int error = errno;
    temporary_.clear();
    fail("create", error);
  }
  if (mode != 0 && ::fchmod(descriptor_, mode) != 0) fail("set the mode of", errno);
}

void OutputFile::write(const void* data, size_t bytes) {
  LIULI_CHECK(descriptor_ >= 0);
  if (buffer_.size() + bytes > kBufferBytes) flush();
  if (bytes >= kBufferBytes) {
    write_through(static_cast<const char*>(data), bytes);
  } else {
    buffer_.append(static_cast<const char*>(data), bytes);
  }
}

void OutputFile::flush() {
  write_through(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void OutputFile::write_through(const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor_, data, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", errno);
    data += written;
    bytes -= static_cast<size_t>(written);
  }
}

void OutputFile::require_regular() {
  LIULI_CHECK(descriptor_ >= 0);
  if (temporary_.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: what comes out of order can only be written to a regular file", path_));
  flush();
}

void OutputFile::write_at(int64_t offset, const void* data, size_t bytes) {
  require_regular();
  for (const char* at = static_cast<const char*>(data); bytes > 0;) {
    const ssize_t written = ::pwrite(descriptor_, at, bytes, offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", errno);
    at += written;
    offset += written;
    bytes -= static_cast<size_t>(written);
  }
}

void OutputFile::read_at(int64_t offset, void* data, size_t bytes) {
  require_regular();
  for (char* at = static_cast<char*>(data); bytes > 0;) {
    const ssize_t n = ::pread(descriptor_, at, bytes, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("read back", n < 0 ? errno : EIO);
    at += n;
    offset += n;
    bytes -= static_cast<size_t>(n);
  }
}

void OutputFile::set_size(int64_t bytes) {
  require_regular();
  if (::ftruncate(descriptor_, bytes) != 0) fail("write", errno);
}

void OutputFile::expect_size(int64_t bytes) {
  if (temporary_.empty()) return;
  struct statvfs disk {};
  if (::fstatvfs(descriptor_, &disk) != 0) return;  // writing will tell
  const uint64_t room = uint64_t{disk.f_bavail} * disk.f_frsize;
  if (static_cast<uint64_t>(bytes) <= room) return;
  discard();
  throw Error(ErrorCode::io_error,
              fmt::format("{}: it will have {} bytes, the disk has room for {}", path_, bytes, room));
}

void OutputFile::sync() {
  LIULI_CHECK(descriptor_ >= 0);
  flush();
  if (!temporary_.empty() && ::fdatasync(descriptor_) != 0) fail("write", errno);
}

void OutputFile::commit() {
  LIULI_CHECK(descriptor_ >= 0);
  flush();
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  // A network file system reports a full disk only here.
  if (closed != 0) fail("write", errno);
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("rename the finished file to", errno);
  temporary_.clear();
}

void OutputFile::discard() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void OutputFile::fail(const char* action, int error) {
  discard();
  throw Error(ErrorCode::io_error, fmt::format("{}: cannot {} it: {}", path_, action, std::strerror(error)));
}

}  // namespace liuli
