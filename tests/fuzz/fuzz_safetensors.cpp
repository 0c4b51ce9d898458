// Fuzz target of the safetensors reader: any bytes must give arrays that can be read, or an Error.
#include <cstddef>
#include <cstdint>

#include "ask_source.h"
#include "formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace liuli;
  try {
    const SafetensorsFile file("input", FileBytes{data, size, nullptr});
    for (const auto& tensor : file.tensors()) {
      if (file.find(tensor.name) != &tensor) __builtin_trap();
      ask([&] { (void)file.floats(tensor.name); });
      ask([&] { (void)file.doubles(tensor.name); });
      ask([&] { (void)file.integers(tensor.name); });
      if (file.raw(tensor.name).size() != static_cast<size_t>(tensor.bytes)) __builtin_trap();
    }
  } catch (const Error&) {
    // The reader's way to say no.
  }
  return 0;
}
