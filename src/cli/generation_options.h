// How to draw tokens and when to stop: the options that run and chat share.
#pragma once
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "liuli/engine.h"

namespace liuli::cli {

struct GenerationOptions {
  GenerateSettings settings;
  std::vector<std::string> logit_bias;  ///< "ID=VALUE"
  int context = 0;                      ///< 0: the model's own
  const CLI::App* command = nullptr;    ///< which options were given
};

void add_generation_options(CLI::App& command, GenerationOptions& options);

/// The settings with the biases parsed, and with what the model's makers recommend where no option says otherwise.
/// Errors: invalid_argument.
GenerateSettings generate_settings(const GenerationOptions& options, const Engine& engine);

/// What of that is the makers': "temperature 0.6, top-p 0.9"; "" for nothing.
std::string recommended_settings(const GenerationOptions& options, const Engine& engine);

/// Why it stopped, in words: "end of text", "the context of 2048 tokens is full", …
std::string stop_notice(StopReason reason, int max_tokens, int max_context);

/// "prompt: 12 tokens, 310 tokens/s · generated: 40 tokens, 95.1 tokens/s · end of text".
std::string timing_line(const GenerateResult& result, const std::string& stopped);

/// Tokens per second; 0 when no time was measured.
double tokens_per_second(double tokens, double seconds);

}  // namespace liuli::cli
