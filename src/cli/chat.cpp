// liuli chat: a conversation; the whole of it is rendered anew each turn and the session reuses what it has
// computed.
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/exit_codes.h"
#include "cli/generation_options.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/speculation_options.h"
#include "cli/text_table.h"
#include "core/output_file.h"

namespace liuli::cli {
namespace {

struct ChatOptions {
  ModelOptions model;
  GenerationOptions generation;
  SpeculationOptions speculation;
  std::string system;
  bool recompute = false;
};

constexpr const char* kCommands =
    "/help            this list\n"
    "/reset           forget the conversation\n"
    "/system TEXT     set the system message (empty: none)\n"
    "/save FILE       write the conversation as JSON\n"
    "/quit            leave (so does Ctrl-D)\n"
    "Ctrl-C stops an answer and keeps what there is of it.\n";

class Chat {
 public:
  Chat(const ChatOptions& options, bool json)
      : options_(options),
        json_(json),
        interactive_(isatty(STDIN_FILENO) == 1),
        system_(options.system),
        engine_(load()),
        settings_(generate_settings(options.generation, engine_)) {
    // Throws with the reason and the remedy.
    if (!engine_.has_chat_template()) engine_.render_chat(conversation(), nullptr);
    const InterruptGuard guard;
    settings_.speculation = load_speculation(options.speculation, options.model, draft_);
    new_session();
  }

  int run() {
    if (interactive_) fmt::print(stderr, "{} ready; /help lists the commands\n", engine_.config().name);
    std::string line;
    while (read_line(line)) {
      if (line.empty()) continue;
      if (line[0] != '/') {
        answer_safely(line);
      } else if (!obey_safely(line)) {
        break;
      }
    }
    return 0;
  }

 private:
  Engine load() {
    const InterruptGuard guard;
    return load_engine(options_.model);
  }

  void new_session() { session_.emplace(engine_, options_.generation.context); }

  bool read_line(std::string& line) {
    if (interactive_) {
      fmt::print(stderr, "> ");
      std::fflush(stderr);
    }
    if (!std::getline(std::cin, line)) return false;
    if (line.ends_with('\r')) line.pop_back();
    return true;
  }

  // A person may go on after an error (a prompt too long, a bad file name); a script must learn of it.
  template <typename Work>
  bool guarded(const Work& work) {
    try {
      return work();
    } catch (const std::exception&) {
      if (!interactive_) throw;
      report_failure(describe_failure(std::current_exception()), json_);
      return true;
    }
  }

  void answer_safely(const std::string& line) {
    const size_t kept = messages_.size();
    guarded([&] {
      try {
        answer(line);
      } catch (...) {
        messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(kept), messages_.end());
        throw;
      }
      return true;
    });
  }

  bool obey_safely(const std::string& line) {
    return guarded([&] { return obey(line); });
  }

  // False: leave.
  bool obey(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string command = line.substr(0, space);
    const std::string argument = space == std::string::npos ? "" : line.substr(space + 1);
    if (command == "/quit" || command == "/exit") return false;
    if (command == "/help") {
      fmt::print(stderr, "{}", kCommands);
    } else if (command == "/reset") {
      messages_.clear();
      new_session();
    } else if (command == "/system") {
      system_ = argument;
    } else if (command == "/save") {
      save(argument);
    } else {
      throw Error(ErrorCode::invalid_argument, fmt::format("no command {}; /help lists them", command));
    }
    return true;
  }

  nlohmann::ordered_json conversation() const {
    auto all = nlohmann::ordered_json::array();
    if (!system_.empty()) all.push_back({{"role", "system"}, {"content", system_}});
    for (const auto& message : messages_) all.push_back(message);
    return all;
  }

  void save(const std::string& path) const {
    if (path.empty()) throw Error(ErrorCode::invalid_argument, "/save needs a file name");
    OutputFile file(path);
    const nlohmann::ordered_json body = {{"model", options_.model.model}, {"messages", conversation()}};
    file.write(json_text(body) + "\n");
    file.commit();
  }

  GenerateResult generate() {
    if (options_.recompute) new_session();
    const InterruptGuard guard;
    Progress progress("reading", ProgressUnit::tokens);
    GenerateSettings settings = settings_;
    settings.cancel = &InterruptGuard::flag();
    settings.on_prompt_progress = [&progress](int done, int total) { progress.update(done, total); };
    const std::vector<int> ids = engine_.render_chat(conversation(), nullptr).ids;
    return session_->generate(ids, settings, [&](const GeneratedToken& token) {
      progress.clear();
      if (!json_) fmt::print("{}", token.text);
      std::fflush(stdout);
      return true;
    });
  }

  void answer(const std::string& line) {
    messages_.push_back({{"role", "user"}, {"content", line}});
    const GenerateResult result = generate();
    messages_.push_back({{"role", "assistant"}, {"content", result.text}});
    if (json_) {
      print_json(result);
    } else {
      print_ending(result);
    }
    std::fflush(stdout);
  }

  void print_json(const GenerateResult& result) const {
    nlohmann::ordered_json body = {{"text", result.text},
                                   {"stop_reason", to_string(result.reason)},
                                   {"prompt_tokens", result.prompt_tokens},
                                   {"reused_tokens", result.reused_tokens},
                                   {"generated_tokens", result.tokens.size()},
                                   {"prompt_seconds", result.prompt_seconds},
                                   {"decode_seconds", result.decode_seconds}};
    if (!options_.speculation.source.empty())
      body["speculation"] = speculation_json(options_.speculation, result);
    fmt::print("{}\n", json_text(body, -1));
  }

  void print_ending(const GenerateResult& result) const {
    if (!result.text.ends_with('\n')) fmt::print("\n");
    std::fflush(stdout);
    const std::string stopped = stop_notice(result.reason, settings_.max_tokens, session_->max_context());
    if (interactive_ || result.reason == StopReason::context_full) {
      fmt::print(stderr, "[{}{}]\n", timing_line(result, stopped),
                 speculation_text(options_.speculation, result));
    }
    if (result.reason == StopReason::context_full) fmt::print(stderr, "[/reset starts a new conversation]\n");
  }

  const ChatOptions& options_;
  bool json_, interactive_;
  std::string system_;
  Engine engine_;
  std::optional<Engine> draft_;
  GenerateSettings settings_;
  std::optional<Session> session_;
  std::vector<nlohmann::ordered_json> messages_;
};

}  // namespace

void add_chat_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<ChatOptions>();
  options->generation.settings.max_tokens = 1024;
  auto* command = app.add_subcommand("chat", "talk with a model; also line by line from a pipe");
  command->group("Use a model");
  add_model_argument(*command, options->model.model)->required();
  command->add_option("--system", options->system, "system message")->type_name("TEXT");
  command->add_flag("--recompute", options->recompute,
                    "compute the whole conversation anew each turn instead of reusing the cache");
  add_chat_template_option(*command, options->model.settings.chat_template);
  add_load_options(*command, options->model);
  add_generation_options(*command, options->generation);
  add_speculation_options(*command, options->speculation);
  add_json_flag(*command, program, "one JSON object per turn, on one line");
  command->footer(std::string("In the conversation:\n") + kCommands);
  command->callback([options, &program] {
    program.action = [options, &program] { return Chat(*options, program.json).run(); };
  });
}

}  // namespace liuli::cli
