// The report as one page: no script from elsewhere, no picture file, no font.
#include <fmt/format.h>

#include "core/markup.h"
#include "train/lab/experiments.h"
#include "train/lab/plot.h"

namespace liuli {
namespace {

using lab::number;

constexpr const char* kHead = R"html(<!doctype html>
<html lang="{lang}" data-lang="{lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>liuli lab</title>
<style>
:root { --page: #ffffff; --ink: #1d2430; --soft: #667085; --line: #d9dee7; --card: #f6f8fb; --good: #14794a; --half: #96600a; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) { --page: #12161d; --ink: #e5e9f0; --soft: #98a2b3; --line: #303845; --card: #1a2029; --good: #4cc38a; --half: #e0ac5a; --bad: #f2827b; } }
:root[data-theme=dark] { --page: #12161d; --ink: #e5e9f0; --soft: #98a2b3; --line: #303845; --card: #1a2029; --good: #4cc38a; --half: #e0ac5a; --bad: #f2827b; }
body { background: var(--page); color: var(--ink); font: 16px/1.6 system-ui, "Noto Sans CJK SC", "PingFang SC", sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
html[data-lang=zh] .en, html[data-lang=en] .zh { display: none; }
nav { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; border-bottom: 1px solid var(--line); padding-bottom: .5rem; }
nav a { color: inherit; }
button { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: .4rem; padding: .1rem .7rem; cursor: pointer; }
section { margin: 2.5rem 0; }
blockquote { margin: .5rem 0; padding: .4rem 1rem; border-left: 3px solid var(--soft); background: var(--card); }
.verdict { font-weight: 600; } .holds { color: var(--good); } .partly { color: var(--half); } .contradicted { color: var(--bad); } .untested { color: var(--soft); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; } th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--line); text-align: left; max-width: 34rem; }
caption { text-align: left; font-weight: 600; padding: .6rem 0; white-space: nowrap; } figure { margin: 1rem 0; } figcaption { font-weight: 600; }
svg { width: 100%; max-width: 44rem; height: auto; } svg text { fill: var(--soft); font-size: 12px; } svg .grid { stroke: var(--line); } polyline { fill: none; stroke-width: 1.8; }
.s0 { stroke: #2f6fde; fill: #2f6fde; } .s1 { stroke: #d9542b; fill: #d9542b; } .s2 { stroke: #1f9d6b; fill: #1f9d6b; } .s3 { stroke: #a24bc9; fill: #a24bc9; }
.s4 { stroke: #c08a12; fill: #c08a12; } .s5 { stroke: #0f93a8; fill: #0f93a8; } .s6 { stroke: #cf3f83; fill: #cf3f83; } .s7 { stroke: #6b7a90; fill: #6b7a90; }
.small { color: var(--soft); font-size: .88rem; }
</style>
</head>
<body>
)html";

constexpr const char* kScript = R"js(<script>
const root = document.documentElement;
document.getElementById("language").onclick = () => { root.dataset.lang = root.lang = root.dataset.lang === "zh" ? "en" : "zh"; };
document.getElementById("theme").onclick = () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
root.dataset.theme = dark ? "light" : "dark";
};
</script>
</body>
</html>
)js";

std::string both(const BilingualText& text) {
  if (text.zh == text.en) return escaped(text.en);
  return fmt::format("<span class=\"zh\" lang=\"zh\">{}</span><span class=\"en\" lang=\"en\">{}</span>",
                     escaped(text.zh), escaped(text.en));
}

std::string html_table(const LabTable& table) {
  std::string html = fmt::format("<div class=\"scroll\"><table><caption>{}</caption><tr>", both(table.title));
  for (const BilingualText& c : table.columns) html += fmt::format("<th>{}</th>", both(c));
  html += "</tr>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (const BilingualText& cell : row) html += fmt::format("<td>{}</td>", both(cell));
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

LabTable checks_table(const LabReport& report) {
  LabTable table{{"判断所依据的数", "What the verdict rests on"},
                 {{"量", "what"}, {"测得", "measured"}, {"门槛", "threshold"}, {"", ""}},
                 {}};
  for (const LabCheck& c : report.checks)
    table.rows.push_back({c.what, number(c.measured), (c.at_least ? "≥ " : "≤ ") + number(c.threshold),
                          c.holds()     ? "✓"
                          : c.essential ? BilingualText{"✗(关键)", "✗ (essential)"}
                                        : BilingualText{"✗"}});
  return table;
}

std::string section(const LabReport& r) {
  std::string html = fmt::format("<section id=\"{}\"><h2>{}</h2><p>{}</p>\n<blockquote>{}</blockquote>\n",
                                 r.name, both(r.title), both(r.question), both(r.claim));
  html += fmt::format("<p><span class=\"verdict {}\">{}</span> {}</p>\n", to_string(r.verdict),
                      both(verdict_text(r.verdict)), both(r.because));
  if (!r.checks.empty()) html += html_table(checks_table(r));
  for (const LabPlot& p : r.plots)
    html += fmt::format(
        "<figure><figcaption>{}</figcaption><div class=\"zh\">{}</div><div class=\"en\">{}</div></figure>\n",
        both(p.title), lab::svg_plot(p, Language::zh), lab::svg_plot(p, Language::en));
  for (const LabTable& t : r.tables) html += html_table(t);
  for (const BilingualText& note : r.notes) html += fmt::format("<p class=\"small\">{}</p>\n", both(note));
  return html + fmt::format("<p class=\"small\">liuli lab {} --seed {}{} · {:.1f} s{}{}</p></section>\n",
                            r.name, r.seed, r.quick ? " --quick" : "", r.seconds,
                            r.model.empty() ? "" : " · ", escaped(r.model));
}

}  // namespace

std::string render_lab_html(const std::vector<LabReport>& reports, Language first_shown) {
  std::string html = kHead;
  const std::string mark = "{lang}";
  for (size_t at = html.find(mark); at != std::string::npos; at = html.find(mark))
    html.replace(at, mark.size(), first_shown == Language::zh ? "zh" : "en");
  html += fmt::format("<h1>{}</h1>\n<nav>", both({"琉璃实验室", "Liuli lab"}));
  for (const LabReport& r : reports) html += fmt::format("<a href=\"#{}\">{}</a> ", r.name, both(r.title));
  html += "<button id=\"language\">中文 / English</button><button id=\"theme\">◐</button></nav>\n";
  html +=
      fmt::format("<p class=\"small\">{}</p>\n",
                  both({"每个结论都由本次运行的数算出:全部通过为成立,关键的一项不过即为矛盾,其余为部分成立。",
                        "Every verdict follows from this run's numbers: all checks pass: holds; an essential "
                        "one fails: contradicted; otherwise: in part."}));
  html += html_table([&] {
    LabTable overview{
        {"一览", "At a glance"}, {{"实验", "experiment"}, {"结论", "verdict"}, {"说法", "claim"}}, {}};
    for (const LabReport& r : reports) overview.rows.push_back({r.title, verdict_text(r.verdict), r.claim});
    return overview;
  }());
  for (const LabReport& r : reports) html += section(r);
  return html + kScript;
}

}  // namespace liuli
