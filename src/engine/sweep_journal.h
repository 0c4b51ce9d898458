// The file in which a sweep keeps what it has finished.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace liuli {

/// A line of JSON that says which sweep it is, then one line per batch: places and values. Lines are appended and flushed,
/// so that whatever stops the program costs one batch.
class SweepJournal {
 public:
  /// No file: remembers nothing.
  SweepJournal() = default;
  /// Reads what is there, or begins the file. `sweep` tells sweeps apart. Errors: invalid_argument (another sweep's
  /// journal, or no journal), io_error.
  SweepJournal(const std::string& path, const std::string& sweep);

  struct Entry {
    int64_t at;
    double value;
  };
  const std::vector<Entry>& found() const { return found_; }
  /// Errors: io_error.
  void append(const std::vector<Entry>& entries);

 private:
  void read(const std::string& text, const std::string& sweep);

  std::string path_;
  std::vector<Entry> found_;
};

}  // namespace liuli
