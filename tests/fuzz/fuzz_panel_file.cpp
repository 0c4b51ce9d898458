// Fuzz target of the panel file reader: any beginning of a file must give matrices that lie in it, or an Error. Seeds are
// headers; the data, zeros, stands behind them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "formats/panel_file.h"
#include "liuli/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace liuli;
  // As long as the seeds' matrices say.
  static std::vector<uint8_t> file((2 << 20) + 2240 + 4096);
  const size_t n = std::min(size, file.size());
  std::memcpy(file.data(), data, n);
  try {
    const PanelFile panels("input", FileBytes{file.data(), file.size(), nullptr});
    for (const PackedMatrix& m : panels.header().matrices) {
      const auto bytes = panels.panels(m);
      if (bytes.get() < file.data() || bytes.get() + m.bytes > file.data() + file.size()) __builtin_trap();
    }
    if (!panels.populate(panels.data_begin(), panels.file_bytes() - panels.data_begin())) __builtin_trap();
  } catch (const Error&) {
    // The reader's way to say no.
  }
  std::memset(file.data(), 0, n);
  return 0;
}
