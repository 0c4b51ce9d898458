// A file that appears complete or not at all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace liuli {

/// Writes beside the target under a temporary name and renames on commit(); until then, and after any error,
/// the target is what it was. A target that exists and is not a regular file (/dev/null, /dev/stdout, a pipe)
/// is written to directly. Not for use from several threads.
///
/// Errors: io_error, naming the path and the system's reason (permission, no such directory, disk full).
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();  ///< without commit(): removes the temporary
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Writes at a place of its own, in any order; the file is as long as its last byte, and 0 where nothing was written.
  /// Errors: invalid_argument where the target is not a regular file.
  void write_at(int64_t offset, const void* data, size_t bytes);
  /// What was written there. Errors: as write_at.
  void read_at(int64_t offset, void* data, size_t bytes);
  /// Makes the file so long. Errors: as write_at.
  void set_size(int64_t bytes);
  /// Says how long the file will be, before much of it is written. Errors: io_error where the disk has less room.
  void expect_size(int64_t bytes);
  /// Waits until everything written is on the disk, so that the name never stands for bytes that a power cut took.
  void sync();
  /// Writes what is buffered, closes and renames. Nothing may be written afterwards.
  void commit();

  const std::string& path() const { return path_; }

 private:
  void open_temporary(unsigned mode);
  void flush();
  void require_regular();
  void write_through(const char* data, size_t bytes);
  void discard() noexcept;
  [[noreturn]] void fail(const char* action, int error);

  std::string path_;       ///< as the caller named it, for messages
  std::string target_;     ///< symbolic links resolved
  std::string temporary_;  ///< empty when written to directly
  std::string buffer_;
  int descriptor_ = -1;
};

}  // namespace liuli
