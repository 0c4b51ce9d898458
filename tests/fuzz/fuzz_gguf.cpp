// Fuzz target of the GGUF reader: any bytes must give a source whose every answer can be used, or an Error.
#include <cstddef>
#include <cstdint>

#include "ask_source.h"
#include "formats/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace liuli;
  try {
    const auto source = open_gguf_bytes("input", FileBytes{data, size, nullptr});
    ask_everything(source->metadata());
    read_tensors(*source);
  } catch (const Error&) {
    // The reader's way to say no.
  }
  return 0;
}
