// The smallest program around the library: load a model, ask it one question, print the answer as it comes.
//
//   liuli_example MODEL.gguf "What is the capital of France?"
#include <cstdio>

#include <nlohmann/json.hpp>

#include "liuli/engine.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: liuli_example MODEL.gguf PROMPT\n");
    return 2;
  }
  try {
    liuli::Engine engine = liuli::Engine::load(argv[1]);
    const auto messages = nlohmann::ordered_json::array({{{"role", "user"}, {"content", argv[2]}}});
    const liuli::ChatPrompt prompt = engine.render_chat(messages, nullptr);  // text and token ids

    liuli::GenerateSettings settings;  // greedy: the same answer every time
    settings.max_tokens = 100;
    liuli::Session session(engine);
    const auto result = session.generate(prompt.ids, settings, [](const liuli::GeneratedToken& token) {
      std::fputs(token.text.c_str(), stdout);
      return std::fflush(stdout) == 0;  // false would stop it
    });
    std::printf("\n[%zu tokens, %s]\n", result.tokens.size(), liuli::to_string(result.reason));
  } catch (const liuli::Error& e) {
    std::fprintf(stderr, "%s: %s\n", liuli::to_string(e.code()), e.what());
    return 1;
  }
}
