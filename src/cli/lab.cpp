// liuli lab: experiments that test what is said about transformer blocks.
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/language_options.h"
#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "core/output_file.h"
#include "liuli/error.h"
#include "liuli/lab.h"

namespace liuli::cli {
namespace {

struct LabOptions {
  std::vector<std::string> names;
  LabSettings settings;
  LanguageOptions language;
  std::string html;
  bool without_model = false, list = false;
};

constexpr const char* kUsualModel = "smollm2";

// The named model, else the usual one if it can be found, else none.
std::string find_model(const LabOptions& o) {
  if (o.without_model) return "";
  if (!o.settings.model.empty()) return resolve_model(o.settings.model);
  try {
    return resolve_model(kUsualModel);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::not_found) throw;
    return "";
  }
}

std::vector<std::string> chosen(const LabOptions& o) {
  for (const std::string& name : o.names)
    if (name == "all") return lab_names();
  return o.names;
}

// One line on stderr that replaces itself, where a person looks.
class Line {
 public:
  void show(const std::string& what, double done) {
    if (!terminal_) return;
    fmt::print(stderr, "\r\x1b[K{}  {:.0f} %", what, 100 * done);
    std::fflush(stderr);
  }
  ~Line() {
    if (terminal_) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) != 0;
};

std::vector<LabReport> measure(const LabOptions& o) {
  Line line;
  LabSettings settings = o.settings;
  settings.model = find_model(o);
  settings.on_progress = [&](const std::string& what, double done) { line.show(what, done); };
  return run_lab(chosen(o), settings);
}

void print_overview(const std::vector<LabReport>& reports, Language language) {
  TextTable table({{"lab"}, {language == Language::zh ? "结论" : "verdict"}, {"s", Align::right}});
  double seconds = 0;
  for (const LabReport& r : reports) {
    table.add_row({r.name, verdict_text(r.verdict).in(language), fmt::format("{:.1f}", r.seconds)});
    seconds += r.seconds;
  }
  fmt::print("{}{:.1f} s\n", table.render(), seconds);
}

int lab(const LabOptions& o, bool json) {
  if (o.list || o.names.empty()) {
    for (const std::string& name : lab_names()) fmt::print("{}\n", name);
    return 0;
  }
  const std::vector<LabReport> reports = measure(o);
  const Language language = o.language.language();
  if (!o.html.empty()) {
    OutputFile file(o.html);
    const std::string page = render_lab_html(reports, language);
    file.write(page.data(), page.size());
    file.commit();
  }
  if (json) {
    auto all = nlohmann::ordered_json::array();
    for (const LabReport& r : reports) all.push_back(r);
    fmt::print("{}\n", json_text(all));
    return 0;
  }
  const TextStyle style{terminal_width(), ::isatty(STDOUT_FILENO) != 0};
  for (const LabReport& r : reports) fmt::print("{}\n", render_lab_text(r, language, style));
  if (reports.size() > 1) print_overview(reports, language);
  return 0;
}

}  // namespace

void add_lab_command(CLI::App& app, Program& program) {
  auto o = std::make_shared<LabOptions>();
  auto* command = app.add_subcommand("lab", "test what is said about transformer blocks, by experiment");
  command->group("See inside");
  command->add_option("NAME", o->names, "experiments (--list), or all");
  command->add_flag("--list", o->list, "the experiments");
  command->add_option("--model", o->settings.model,
                      "a real model for the parts that look at one (default: smollm2, if it is there)");
  command->add_flag("--no-model", o->without_model, "leave those parts out");
  command->add_option("--html", o->html, "also write a page that stands by itself, in both languages");
  command->add_option("--seed", o->settings.seed, "of weights and texts")->capture_default_str();
  command->add_flag("--quick", o->settings.quick, "fewer depths, seeds and steps");
  command
      ->add_option("--threads", o->settings.threads,
                   "runs side by side (default: all CPUs); changes no number")
      ->check(quiet(CLI::NonNegativeNumber));
  command->add_option("--lang", o->language.name, "zh or en; default: the locale's")
      ->check(quiet(CLI::IsMember({"zh", "en"})));
  add_json_flag(*command, program);
  command->footer(
      "Each verdict follows from the numbers of the run; the thresholds are printed.\n"
      "Examples:\n"
      "  liuli lab explosion\n"
      "  liuli lab all --html report.html --lang zh");
  command->callback([o, &program] { program.action = [o, &program] { return lab(*o, program.json); }; });
}

}  // namespace liuli::cli
