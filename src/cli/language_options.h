// --lang and --digits, for commands that explain.
#pragma once
#include <string>

#include <CLI/CLI.hpp>

#include "cli/program.h"
#include "liuli/explain.h"

namespace liuli::cli {

struct LanguageOptions {
  std::string name;  ///< "zh", "en", or "" for the locale's
  int digits = kExplainDigits;

  Language language() const {
    if (name.empty()) return language_from_environment();
    return name == "zh" ? Language::zh : Language::en;
  }
};

inline void add_language_option(CLI::App& command, LanguageOptions& options) {
  command.add_option("--lang", options.name, "language of explanations: zh or en; default: the locale's")
      ->check(quiet(CLI::IsMember({"zh", "en"})));
}

inline void add_language_options(CLI::App& command, LanguageOptions& options) {
  add_language_option(command, options);
  command.add_option("--digits", options.digits, "decimals in worked calculations")
      ->check(quiet(CLI::Range(0, 17)))
      ->capture_default_str();
}

}  // namespace liuli::cli
