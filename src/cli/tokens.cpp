// liuli tokenize, detokenize, render-chat: text to ids and back, also line by line for programs.
#include <memory>

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "cli/token_input.h"

namespace liuli::cli {
namespace {

using nlohmann::ordered_json;  // the order of keys in tools and messages reaches the template's text

struct TokenOptions {
  std::string model, text, ids, file, chat_template;
  bool has_text = false;
  bool jsonl = false;
  bool no_special = false, parse_special = false;  // tokenize
  bool with_ids = false;                           // render-chat
  bool no_generation_prompt = false;
};

Engine load(const TokenOptions& options) {
  return Engine::load_tokenizer(resolve_model(options.model), options.chat_template);
}

// A member with its default; of the wrong type: invalid_argument through json's own exception.
template <typename T>
T member(const ordered_json& object, const char* name, T otherwise) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return otherwise;
  return found->get<T>();
}

const ordered_json& required(const ordered_json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("the object has no \"{}\"", name));
  }
  return *found;
}

std::vector<int> ids_of(const ordered_json& object, const Engine& engine) {
  auto ids = required(object, "ids").get<std::vector<int>>();
  for (const int id : ids) {
    if (id >= 0 && id < engine.vocab_size()) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("token id {} is outside the vocabulary 0 … {}", id, engine.vocab_size() - 1));
  }
  return ids;
}

// ---- tokenize ----

ordered_json tokenize_line(const ordered_json& question, const Engine& engine) {
  const auto text = required(question, "text").get<std::string>();
  return {{"ids", engine.tokenize(text, member(question, "add_special", true),
                                  member(question, "parse_special", false))}};
}

std::string token_table(const std::vector<int>& ids, const Engine& engine) {
  TextTable table({{"position", Align::right}, {"id", Align::right}, {"token"}});
  for (size_t i = 0; i < ids.size(); ++i) {
    table.add_row({fmt::format("{}", i), fmt::format("{}", ids[i]), visible(engine.token_text(ids[i]), 40)});
  }
  return table.render();
}

int tokenize(const TokenOptions& options, bool as_json) {
  const Engine engine = load(options);
  if (options.jsonl) {
    answer_json_lines([&](const ordered_json& question) { return tokenize_line(question, engine); });
    return 0;
  }
  const std::string text = options.has_text && options.text != "-" ? options.text : read_standard_input();
  const std::vector<int> ids = engine.tokenize(text, !options.no_special, options.parse_special);
  if (as_json) {
    auto tokens = ordered_json::array();
    for (const int id : ids) tokens.push_back(engine.token_text(id));
    fmt::print("{}\n", json_text(ordered_json{{"ids", ids}, {"tokens", std::move(tokens)}}));
  } else {
    fmt::print("{}{} tokens\n", token_table(ids, engine), ids.size());
  }
  return 0;
}

// ---- detokenize ----

int detokenize(const TokenOptions& options, bool as_json) {
  const Engine engine = load(options);
  if (options.jsonl) {
    answer_json_lines([&](const ordered_json& question) {
      return ordered_json{{"text", engine.detokenize(ids_of(question, engine))}};
    });
    return 0;
  }
  const bool given = !options.ids.empty() && options.ids != "-";
  const std::vector<int> ids =
      ids_of(ordered_json{{"ids", parse_ids(given ? options.ids : read_standard_input())}}, engine);
  const std::string text = engine.detokenize(ids);
  if (as_json) {
    fmt::print("{}\n", json_text(ordered_json{{"text", text}}));
  } else {
    fmt::print("{}\n", text);
  }
  return 0;
}

// ---- render-chat ----

ordered_json render_line(const ordered_json& question, const Engine& engine, const TokenOptions& options) {
  const ordered_json tools = question.contains("tools") ? question["tools"] : ordered_json();
  const bool generation_prompt = member(question, "add_generation_prompt", !options.no_generation_prompt);
  const ChatPrompt prompt = engine.render_chat(required(question, "messages"), tools, generation_prompt);
  ordered_json answer = {{"text", prompt.text}};
  if (options.with_ids) answer["ids"] = prompt.ids;
  return answer;
}

ordered_json chat_file(const std::string& path) {
  ordered_json parsed =
      ordered_json::parse(path.empty() || path == "-" ? read_standard_input() : read_file(path));
  return parsed.is_array() ? ordered_json{{"messages", std::move(parsed)}} : parsed;
}

int render_chat(const TokenOptions& options, bool as_json) {
  const Engine engine = load(options);
  if (options.jsonl) {
    answer_json_lines([&](const ordered_json& question) { return render_line(question, engine, options); });
    return 0;
  }
  const ordered_json question = chat_file(options.file);
  if (!question.is_object())
    throw Error(ErrorCode::invalid_argument, "expected a JSON object with \"messages\"");
  const ordered_json answer = render_line(question, engine, options);
  if (as_json) {
    fmt::print("{}\n", json_text(answer));
  } else if (options.with_ids) {
    fmt::print("{}\n", joined(answer["ids"].get<std::vector<int>>(), ","));
  } else {
    fmt::print("{}", answer["text"].get<std::string>());
  }
  return 0;
}

using Work = int (*)(const TokenOptions&, bool as_json);

CLI::App* add(CLI::App& app, Program& program, const std::shared_ptr<TokenOptions>& options, const char* name,
              const char* help, Work work) {
  auto* command = app.add_subcommand(name, help);
  command->group("Text and tokens");
  add_model_argument(*command, options->model)->required();
  add_json_flag(*command, program);
  command->callback([options, &program, work] {
    program.action = [options, &program, work] { return work(*options, program.json); };
  });
  return command;
}

}  // namespace

void add_token_commands(CLI::App& app, Program& program) {
  auto options = std::make_shared<TokenOptions>();
  auto* command = add(app, program, options, "tokenize", "text to token ids", tokenize);
  command->add_option_function<std::string>(
      "TEXT", [options](const std::string& text) { options->text = text, options->has_text = true; },
      "the text; none or -: standard input");
  command->add_flag("--no-special", options->no_special,
                    "do not add what the vocabulary prescribes (BOS, EOS)");
  command->add_flag("--parse-special", options->parse_special,
                    "recognise control tokens written in the text");
  command->add_flag("--jsonl", options->jsonl,
                    "lines {\"text\":…,\"add_special\":true,\"parse_special\":false} in, {\"ids\":[…]} out");
  command->footer(
      "Examples:\n  liuli tokenize smollm2.gguf 'Hello 世界'\n"
      "  echo '{\"text\":\"Hello\",\"add_special\":false}' | liuli tokenize smollm2.gguf --jsonl");

  options = std::make_shared<TokenOptions>();
  command = add(app, program, options, "detokenize", "token ids to text", detokenize);
  command->add_option("--ids", options->ids, "token ids: 1,2,3; none or -: standard input")->type_name("IDS");
  command->add_flag("--jsonl", options->jsonl, "lines {\"ids\":[…]} in, {\"text\":…} out");
  command->footer("Example:\n  liuli detokenize smollm2.gguf --ids 19556,905");

  options = std::make_shared<TokenOptions>();
  command =
      add(app, program, options, "render-chat", "messages through the model's chat template", render_chat);
  command->add_option("FILE", options->file,
                      "JSON: messages, or {\"messages\":…,\"tools\":…}; none: standard input");
  command->add_flag("--ids", options->with_ids,
                    "also the token ids; what came from the user is never matched as a control token");
  command->add_flag("--no-generation-prompt", options->no_generation_prompt,
                    "without the opening of the next answer");
  command->add_flag("--jsonl", options->jsonl,
                    "lines {\"messages\":…,\"tools\":…,\"add_generation_prompt\":true} in, {\"text\":…} out");
  add_chat_template_option(*command, options->chat_template);
  command->footer(
      "Example:\n  echo '{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}' | "
      "liuli render-chat smollm2.gguf --jsonl --ids");
}

}  // namespace liuli::cli
