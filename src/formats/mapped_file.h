// A file's bytes, mapped read-only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace liuli {

/// Bytes and whatever keeps them alive: a mapping, or a buffer in tests and fuzzing.
struct FileBytes {
  const uint8_t* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;
  bool mapped = false;      ///< pages of a file: they can be dropped and come back by themselves
  int64_t modified_ns = 0;  ///< when the mapped file was last written to, since 1970

  bool holds(const uint8_t* at) const { return at >= data && at < data + size; }
};

/// Maps a whole regular file. The size is taken from the open descriptor, so checks and bytes are of the same
/// file; a file that another process shortens afterwards raises SIGBUS on reading, as with every mapping.
///
/// Errors: not_found; invalid_argument for a directory or a device; corrupt_file for an empty file; io_error
/// (permission).
FileBytes map_file(const std::string& path);

/// Takes the pages of [data, data + size) and a few beside them out of this process's resident memory, whoever reads
/// them (they come back when touched); nothing for buffers.
void drop_resident_pages(const FileBytes& file, const uint8_t* data, size_t size);

/// Asks for large pages where the file system can give them; nothing for buffers.
void prefer_huge_pages(const FileBytes& file);

/// Reads [data, data + size) of a mapping into memory and makes it this process's, at once and not page by page when it
/// is touched; nothing for buffers, and where the system lacks the call (Linux before 5.14). False: the file cannot be
/// read there (a broken disk, or it was shortened).
[[nodiscard]] bool populate_pages(const FileBytes& file, const uint8_t* data, size_t size) noexcept;

}  // namespace liuli
