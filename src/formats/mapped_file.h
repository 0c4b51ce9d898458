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
  bool mapped = false;  ///< pages of a file: they can be dropped and come back by themselves

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

}  // namespace liuli
