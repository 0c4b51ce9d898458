#include "cli/help_formatter.h"

#include <sstream>

#include "cli/text_table.h"

namespace liuli::cli {
namespace {

constexpr int kNameWidth = 28;
constexpr int kWidth = 100;

// "  name      explanation, wrapped"; a name that is too long has the explanation on the next line.
std::string entry(const std::string& name, const std::string& explanation) {
  const std::string indent(kNameWidth, ' ');
  std::string out = "  " + name;
  int column = display_width(out);
  if (column > kNameWidth - 2) {
    out += "\n" + indent;
  } else {
    out += std::string(static_cast<size_t>(kNameWidth - column), ' ');
  }
  column = kNameWidth;
  std::istringstream words(explanation);
  for (std::string word; words >> word;) {
    const int width = display_width(word) + 1;
    if (column > kNameWidth && column + width > kWidth) {
      out += "\n" + indent;
      column = kNameWidth;
    }
    out += (column > kNameWidth ? " " : "") + word;
    column += width;
  }
  return out + "\n";
}

}  // namespace

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return entry(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option));
}

// A positional's name says enough; an option shows what kind of value follows.
std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const bool takes_value = option->get_type_size() != 0 && !option->get_positional();
  return takes_value ? " " + option->get_type_name() : "";
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  const std::string value = option->get_default_str();
  return option->get_description() + (value.empty() ? "" : " (default " + value + ")");
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description());
}

}  // namespace liuli::cli
