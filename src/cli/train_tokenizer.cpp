// liuli train-tokenizer: a vocabulary from text.
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/text_table.h"
#include "liuli/train.h"

namespace liuli::cli {
namespace {

struct TokenizerOptions {
  std::vector<std::string> data;
  std::string output;
  TokenizerSettings settings;
};

int train_tokenizer_action(const TokenizerOptions& options, bool json) {
  const InterruptGuard guard;
  Progress progress("merging", ProgressUnit::tokens);
  TokenizerSettings settings = options.settings;
  settings.on_progress = [&](int64_t done, int64_t total) {
    throw_if_interrupted();
    progress.update(done, total);
  };
  std::vector<std::string> data;
  for (const std::string& file : options.data) data.push_back(resolve_data(file));
  const auto start = std::chrono::steady_clock::now();
  const TokenizerReport r = train_tokenizer(data, options.output, settings);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  progress.clear();
  if (json) {
    const nlohmann::ordered_json result = {{"output", options.output},     {"vocab_size", r.vocab_size},
                                           {"merges", r.merges},           {"text_bytes", r.text_bytes},
                                           {"text_tokens", r.text_tokens}, {"seconds", seconds}};
    fmt::print("{}\n", json_text(result));
  } else {
    fmt::print("{}: {} tokens, {} merges; {} of text are {} tokens, {:.2f} bytes each ({:.1f} s)\n",
               options.output, r.vocab_size, r.merges, size_text(r.text_bytes), count_text(r.text_tokens),
               static_cast<double>(r.text_bytes) / static_cast<double>(std::max<int64_t>(r.text_tokens, 1)),
               seconds);
  }
  return 0;
}

}  // namespace

void add_train_tokenizer_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<TokenizerOptions>();
  auto* command = app.add_subcommand("train-tokenizer", "make a vocabulary from text");
  command->group("Training");
  command->add_option("DATA", options->data, "text files: .txt, or .jsonl with \"text\" in each line")
      ->required();
  command->add_option("-o,--output", options->output, "the folder to write tokenizer.json into")
      ->required()
      ->type_name("FOLDER");
  TokenizerSettings& s = options->settings;
  command
      ->add_option("--kind", s.kind, "qwen2, gpt-2: byte-level BPE, words cut as those models do; characters")
      ->capture_default_str();
  command->add_option("--vocab-size", s.vocab_size, "tokens, everything counted")
      ->check(quiet(CLI::Range(1, 1 << 24)))
      ->capture_default_str();
  command->add_option("--min-count", s.min_count, "what is seen less often becomes no token")
      ->capture_default_str();
  command->add_option("--special", s.special, "tokens that no text makes, ids from 0; the first ends a text");
  add_json_flag(*command, program);
  command->footer(
      "The file is Hugging Face's: other programs read it, and the BPE kinds hold the merges their trainer "
      "finds.\n\n"
      "Examples:\n"
      "  liuli train-tokenizer poems.jsonl --kind characters --vocab-size 6000 -o poems-tokenizer\n"
      "  liuli train-tokenizer shakespeare.txt --vocab-size 2048 -o english");
  command->callback([options, &program] {
    program.action = [options, &program] { return train_tokenizer_action(*options, program.json); };
  });
}

}  // namespace liuli::cli
