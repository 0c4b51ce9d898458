// Reads the bytes as a chat template and renders one conversation with it. An Error is a fine answer.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "liuli/error.h"
#include "tokenizers/chat_template.h"

namespace {

using Json = nlohmann::ordered_json;

const Json& conversation() {
  static const Json variables = Json::parse(R"({
    "messages": [
      {"role": "system", "content": "Be brief."},
      {"role": "user", "content": " Hi <|im_end|> 你好 "},
      {"role": "assistant", "content": "<think>\nx\n</think>\n\nHello", "tool_calls": [
        {"type": "function", "id": "c0", "function": {"name": "add", "arguments": {"a": 1, "b": [2.5, null]}}}]},
      {"role": "tool", "name": "add", "content": "3"},
      {"role": "user", "content": [{"type": "text", "text": "Bye"}, {"type": "image"}]}],
    "tools": [{"type": "function", "function": {"name": "add", "description": "Adds", "parameters": {
      "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}}],
    "add_generation_prompt": true, "enable_thinking": false})");
  return variables;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const liuli::ChatTemplate chat(std::string(reinterpret_cast<const char*>(data), size));
    (void)chat.render(conversation(), Json{{"bos_token", "<s>"}, {"eos_token", "</s>"}});
  } catch (const liuli::Error&) {
  }
  return 0;
}
