// Fuzz target of everything a model file goes through: inspect, tokenizer, load, one token.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/engine_parts.h"
#include "formats/gguf.h"
#include "model/load.h"

namespace {

using namespace liuli;

Runner& runner() {
  static Runner one_thread(1);
  return one_thread;
}

void run_one_token(std::shared_ptr<WeightSource> source) {
  EngineParts parts;
  parts.path = "input";
  load_text_parts(parts, *source, "");
  const Model model = load_model(source, runner().pool, {});
  Sequence sequence(model, run_classes({}, *source));
  const int token = 0;
  const Rows logits = sequence.feed(runner(), {&token, 1});
  (void)kernels::best_kernels().rows.argmax(logits.row(0), logits.width);
  (void)parts.tokenizer->decode(parts.tokenizer->encode("a test\n", true, true));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    run_one_token(open_gguf_bytes("input", FileBytes{data, size, nullptr}));
  } catch (const Error&) {
    // The reader's way to say no.
  }
  return 0;
}
