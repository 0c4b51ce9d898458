// --speculate: guesses that one pass checks several of.
#pragma once
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/model_options.h"

namespace liuli::cli {

struct SpeculationOptions {
  std::string source;  ///< "" none, "lookup", or the draft model
  int max_draft = Speculation{}.max_draft;
};

void add_speculation_options(CLI::App& command, SpeculationOptions& options);

/// The settings they mean; a draft model is loaded into `draft` as `model` is. Errors: as Engine::load.
Speculation load_speculation(const SpeculationOptions& options, const ModelOptions& model,
                             std::optional<Engine>& draft);

/// " · guesses: 40 of 52 right, 3.1 tokens per pass"; "" when none were asked for.
std::string speculation_text(const SpeculationOptions& options, const GenerateResult& result);
nlohmann::ordered_json speculation_json(const SpeculationOptions& options, const GenerateResult& result);

}  // namespace liuli::cli
