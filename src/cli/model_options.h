// The MODEL argument and how to load it: one spelling for every command that needs a model.
#pragma once
#include <string>

#include <CLI/CLI.hpp>

#include "liuli/engine.h"

namespace liuli::cli {

struct ModelOptions {
  std::string model;  ///< a path or a short name
  std::string product_class = "auto", cache_type = "auto", prompt_products = "bf16";
  LoadSettings settings;
};

/// The positional MODEL.
CLI::Option* add_model_argument(CLI::App& command, std::string& model);
/// --cache-type.
CLI::Option* add_cache_type_option(CLI::App& command, std::string& type);
/// --prompt-products.
CLI::Option* add_prompt_products_option(CLI::App& command, std::string& products);
/// --threads, --class, --prompt-products, --cache-type, --panels and --exact.
void add_load_options(CLI::App& command, ModelOptions& options);
/// --chat-template.
void add_chat_template_option(CLI::App& command, std::string& chat_template);

/// A path as it is; a short name ("smollm2") becomes $LIULI_MODELS/smollm2.gguf or
/// <cache>/models/smollm2.gguf. Errors: not_found, naming the places looked at.
std::string resolve_model(const std::string& model);

/// A file as it is; one that is not there is looked for in <cache>/data.
std::string resolve_data(const std::string& file);

/// Loads with a progress bar; Ctrl-C stops it (Error cancelled) where an InterruptGuard lives.
Engine load_engine(const ModelOptions& options);

}  // namespace liuli::cli
