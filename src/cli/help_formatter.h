// How `--help` looks: names in one column, explanations wrapped in the next, defaults at their end.
#pragma once
#include <string>

#include <CLI/CLI.hpp>

namespace liuli::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace liuli::cli
