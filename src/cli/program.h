// What every command shares, and the list of commands.
#pragma once
#include <functional>

#include <CLI/CLI.hpp>

namespace liuli::cli {

/// The command line as parsed: the chosen command and who reads its output.
struct Program {
  bool json = false;            ///< a program reads: results and errors are JSON
  std::function<int()> action;  ///< the command, run after parsing so that usage errors are told apart
};

// Each adds its command (name, options, help) to the application and sets Program::action when chosen.
void add_run_command(CLI::App& app, Program& program);
void add_chat_command(CLI::App& app, Program& program);
void add_explain_command(CLI::App& app, Program& program);
void add_inspect_command(CLI::App& app, Program& program);
void add_plan_command(CLI::App& app, Program& program);
void add_token_commands(CLI::App& app, Program& program);   // tokenize, detokenize, render-chat
void add_number_commands(CLI::App& app, Program& program);  // logits, trace, points, perplexity
void add_lens_command(CLI::App& app, Program& program);
void add_attribute_command(CLI::App& app, Program& program);
void add_ledger_command(CLI::App& app, Program& program);
void add_heads_command(CLI::App& app, Program& program);
void add_heatmap_command(CLI::App& app, Program& program);
void add_embed_command(CLI::App& app, Program& program);
void add_diff_command(CLI::App& app, Program& program);
void add_sweep_command(CLI::App& app, Program& program);
void add_shape_command(CLI::App& app, Program& program);
void add_synth_command(CLI::App& app, Program& program);
void add_quantize_command(CLI::App& app, Program& program);
void add_pack_command(CLI::App& app, Program& program);
void add_imatrix_command(CLI::App& app, Program& program);
void add_lab_command(CLI::App& app, Program& program);
void add_train_command(CLI::App& app, Program& program);
void add_train_tokenizer_command(CLI::App& app, Program& program);
void add_tour_command(CLI::App& app, Program& program);
void add_bench_command(CLI::App& app, Program& program);

/// A check whose range does not clutter the option's name in the help; the description tells what matters.
inline CLI::Validator quiet(CLI::Validator check) { return check.description(""); }

/// --json, for commands whose result a program may read.
inline void add_json_flag(CLI::App& command, Program& program,
                          const char* help = "write the result as JSON") {
  command.add_flag("--json", program.json, help);
}

}  // namespace liuli::cli
