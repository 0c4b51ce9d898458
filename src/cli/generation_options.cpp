#include "cli/generation_options.h"
#include "cli/program.h"

#include <fmt/format.h>

#include "cli/token_input.h"

namespace liuli::cli {
namespace {

void add_sampling_options(CLI::App& command, SamplingSettings& sampling) {
  const char* group = "Sampling";
  command.add_option("--temperature", sampling.temperature, "0: the likeliest token, always (greedy)")
      ->check(quiet(CLI::NonNegativeNumber))
      ->capture_default_str()
      ->group(group);
  command.add_option("--top-k", sampling.top_k, "keep the K likeliest tokens; 0: all")
      ->check(quiet(CLI::NonNegativeNumber))
      ->capture_default_str()
      ->group(group);
  command.add_option("--top-p", sampling.top_p, "keep the likeliest tokens that together reach P; 1: all")
      ->check(quiet(CLI::Range(0.0, 1.0)))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--min-p", sampling.min_p,
                  "keep tokens at least P times as likely as the likeliest; 0: all")
      ->check(quiet(CLI::Range(0.0, 1.0)))
      ->capture_default_str()
      ->group(group);
  command.add_option("--seed", sampling.seed, "the same seed gives the same text")
      ->capture_default_str()
      ->group(group);
  command.add_option("--repeat-penalty", sampling.repetition_penalty, "weaken tokens seen before; 1: off")
      ->check(quiet(CLI::PositiveNumber))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--presence-penalty", sampling.presence_penalty,
                  "taken off the logit of tokens seen before")
      ->capture_default_str()
      ->group(group);
  command.add_option("--frequency-penalty", sampling.frequency_penalty, "taken off once per occurrence")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--penalty-window", sampling.penalty_window, "last tokens the penalties look at; -1: all")
      ->check(quiet(CLI::Range(-1, 1 << 30)))
      ->capture_default_str()
      ->group(group);
}

void add_stop_options(CLI::App& command, GenerationOptions& options) {
  const char* group = "Stopping";
  command.add_option("-n,--max-tokens", options.settings.max_tokens, "generate at most so many tokens")
      ->check(quiet(CLI::PositiveNumber))
      ->capture_default_str()
      ->group(group);
  command.add_option("--stop", options.settings.stop, "end before this text; may be given several times")
      ->allow_extra_args(false)
      ->type_name("TEXT")
      ->group(group);
  command.add_flag("--ignore-eos", options.settings.ignore_eos, "go on after the end-of-text token")
      ->group(group);
  command.add_option("--context", options.context, "room for so many tokens; 0: the model's own")
      ->check(quiet(CLI::NonNegativeNumber))
      ->capture_default_str()
      ->group(group);
}

std::pair<int, float> parse_bias(const std::string& text, int vocab_size) {
  const size_t equals = text.find('=');
  const std::vector<int> id = parse_ids(text.substr(0, equals));
  const auto value = parse_numbers(equals == std::string::npos ? "" : text.substr(equals + 1));
  if (id.size() != 1 || value.size() != 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--logit-bias '{}' is not ID=VALUE", text));
  }
  if (id[0] < 0 || id[0] >= vocab_size) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("--logit-bias: token id {} is outside the vocabulary 0 … {}", id[0], vocab_size - 1));
  }
  return {id[0], static_cast<float>(value[0])};
}

// Calls take(option, recommended value, place of the setting) for what is recommended and not given as an option.
template <class Take>
void each_recommended(const GenerationOptions& options, const Engine& engine, SamplingSettings& sampling,
                      const Take& take) {
  const GenerationDefaults& defaults = engine.generation_defaults();
  const auto offer = [&](const char* option, const auto& value, auto& place) {
    if (value && options.command != nullptr && options.command->count(option) == 0)
      take(option, *value, place);
  };
  offer("--temperature", defaults.temperature, sampling.temperature);
  offer("--top-k", defaults.top_k, sampling.top_k);
  offer("--top-p", defaults.top_p, sampling.top_p);
  offer("--min-p", defaults.min_p, sampling.min_p);
  offer("--repeat-penalty", defaults.repetition_penalty, sampling.repetition_penalty);
}

}  // namespace

void add_generation_options(CLI::App& command, GenerationOptions& options) {
  options.command = &command;
  add_stop_options(command, options);
  add_sampling_options(command, options.settings.sampling);
  command
      .add_option("--logit-bias", options.logit_bias,
                  "add VALUE to a token's logit; may be given several times")
      ->allow_extra_args(false)
      ->type_name("ID=VALUE")
      ->group("Sampling");
}

GenerateSettings generate_settings(const GenerationOptions& options, const Engine& engine) {
  GenerateSettings settings = options.settings;
  each_recommended(options, engine, settings.sampling,
                   [](const char*, auto value, auto& place) { place = value; });
  for (const std::string& bias : options.logit_bias) {
    settings.sampling.logit_bias.push_back(parse_bias(bias, static_cast<int>(engine.config().vocab_size)));
  }
  return settings;
}

std::string recommended_settings(const GenerationOptions& options, const Engine& engine) {
  std::string text;
  SamplingSettings unused;
  each_recommended(options, engine, unused, [&](const char* option, auto value, auto&) {
    text += fmt::format("{}{} {:g}", text.empty() ? "" : ", ", option + 2, static_cast<double>(value));
  });
  return text;
}

std::string stop_notice(StopReason reason, int max_tokens, int max_context) {
  switch (reason) {
    case StopReason::end_of_text:
      return "end of text";
    case StopReason::stop_string:
      return "stop string";
    case StopReason::max_tokens:
      return fmt::format("reached the limit of {} tokens (--max-tokens)", max_tokens);
    case StopReason::context_full:
      return fmt::format("the context of {} tokens is full (--context)", max_context);
    case StopReason::cancelled:
      return "stopped by Ctrl-C";
  }
  return "";
}

double tokens_per_second(double tokens, double seconds) { return seconds > 0 ? tokens / seconds : 0; }

std::string timing_line(const GenerateResult& result, const std::string& stopped) {
  const int fresh = result.prompt_tokens - result.reused_tokens;
  std::string line = fmt::format("prompt: {} tokens", result.prompt_tokens);
  if (result.reused_tokens > 0) line += fmt::format(" ({} from the cache)", result.reused_tokens);
  line += fmt::format(", {:.1f} tokens/s", tokens_per_second(fresh, result.prompt_seconds));
  // The first token comes out of the prompt's pass; the decode time covers the others.
  const size_t decoded = result.tokens.empty() ? 0 : result.tokens.size() - 1;
  line += fmt::format(" · generated: {} tokens", result.tokens.size());
  if (decoded > 0) {
    line += fmt::format(", {:.1f} tokens/s",
                        tokens_per_second(static_cast<double>(decoded), result.decode_seconds));
  }
  return line + " · " + stopped;
}

}  // namespace liuli::cli
