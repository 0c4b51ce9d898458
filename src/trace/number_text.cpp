// An explained number as lines for a terminal and as JSON.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "liuli/explain.h"
#include "trace/explain_texts.h"

namespace liuli {
namespace {

using worked::Text;

// The kinds' names; the English ones are the machine's.
struct Kind {
  const char *en, *zh;
};
constexpr Kind kKinds[] = {{"activation", "激活"},
                           {"choice", "选择"},
                           {"constant", "常数"},
                           {"dot product", "点积"},
                           {"embedding", "嵌入"},
                           {"mask", "掩码"},
                           {"mean", "均值"},
                           {"mean square", "均方"},
                           {"norm", "归一化"},
                           {"normed dot product", "归一化的点积"},
                           {"position", "位置"},
                           {"product", "乘积"},
                           {"quotient", "商"},
                           {"root", "开方"},
                           {"rotation", "旋转"},
                           {"sigmoid", "sigmoid"},
                           {"softmax", "softmax"},
                           {"sum", "和"},
                           {"the same value", "同一个数"},
                           {"weighted sum", "加权和"}};

std::string kind_name(const std::string& kind, Language language) {
  for (const Kind& k : kKinds)
    if (kind == k.en && language == Language::zh) return k.zh;
  return kind;
}

std::string shape_of(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t n : shape) text.append(text.empty() ? "[" : ", ").append(std::to_string(n));
  return text + "]";
}

std::string single(double x) { return fmt::format("{}", static_cast<float>(x)); }
std::string full(double x) { return fmt::format("{:.10g}", x); }

class NumberText {
 public:
  NumberText(const NumberExplanation& e, Language language, size_t max_terms, const TextStyle& style)
      : e_(e), language_(language), max_terms_(max_terms), colour_(style.colour) {}

  std::string render() {
    line("{}", bold(fmt::format("{} = {}", e_.name, single(e_.value))));
    line("  {}: {}", kind_name(e_.kind, language_), e_.formula);
    line("  {}", text(Text::number_where, shape_of(e_.shape), e_.product_class, e_.isa));
    if (!e_.weight_rounding.empty())
      line("  {}", text(Text::number_rounding, e_.activation_rounding, e_.weight_rounding));
    if (!e_.terms.empty()) terms();
    results();
    return out_;
  }

 private:
  template <class... Args>
  std::string text(Text id, const Args&... args) const {
    return fmt::format(fmt::runtime(worked::text(id, language_)), args...);
  }
  template <class... Args>
  void line(const char* format, const Args&... args) {
    out_ += fmt::format(fmt::runtime(format), args...) + "\n";
  }
  std::string bold(const std::string& s) const { return colour_ ? "\033[1m" + s + "\033[0m" : s; }
  std::string dim(const std::string& s) const { return colour_ ? "\033[2m" + s + "\033[0m" : s; }

  void terms() {
    const bool choice = e_.kind == "choice";
    const size_t shown = max_terms_ == 0 ? e_.terms.size() : std::min(max_terms_, e_.terms.size());
    line("\n  {}", text(choice ? Text::number_candidates : Text::number_terms, e_.n_terms));
    double partial = 0;
    for (size_t i = 0; i < shown; i++) {
      const NumberTerm& term = e_.terms[i];
      partial += term.value;
      line("  {:>3}  {:>16}  {:>16}  {}", i + 1, full(term.value), choice ? "" : full(partial),
           product(term));
      for (const NumberOperand& operand : term.operands) stored(operand);
    }
    if (choice || e_.n_terms == 1) return;
    if (shown < e_.n_terms)
      line("    …  {:>16}  {:>16}  {}", full(e_.sum - partial), full(e_.sum),
           text(Text::number_others, e_.n_terms - shown));
    line("  {} {}", text(Text::number_sum), full(e_.sum));
  }

  static std::string product(const NumberTerm& term) {
    std::string all;
    for (const NumberOperand& operand : term.operands) {
      all += all.empty() ? "" : "  ×  ";
      all += operand.name + " " + single(operand.value);
      if (operand.used != operand.value) all += " → " + full(operand.used);
    }
    return all;
  }

  void stored(const NumberOperand& operand) {
    if (!operand.stored) return;
    const StoredBits& s = *operand.stored;
    std::string place = text(Text::number_stored, s.tensor, s.type, s.row, s.block, s.at);
    if (s.has_code) {
      place += fmt::format("; {} · ({} − {})", s.scale, s.code, s.offset);
      if (s.minimum != 0) place += fmt::format(" + {}", s.minimum);
    } else if (s.bytes.size() <= 16) {
      place += "; " + text(Text::number_bits, s.bytes);
    }
    line("  {:>41}{}", "", dim(place));
  }

  void results() {
    for (const NumberStep& s : e_.steps) line("  {} = {}", s.formula, full(s.value));
    line("\n  {} {}", text(Text::number_recomputed), full(e_.recomputed));
    line("  {} {}", text(Text::number_run), single(e_.value));
    const double share = e_.magnitude > 0 ? e_.difference / e_.magnitude : 0;
    line("  {}",
         text(e_.agrees ? Text::number_agrees : Text::number_differs, fmt::format("{:.3g}", e_.difference),
              fmt::format("{:.6g}", e_.magnitude), fmt::format("{:.2g}", share)));
    if (e_.edited) line("  {}", text(Text::number_edited));
    if (e_.exact)
      line("  {}", text(Text::number_exact, single(*e_.exact),
                        fmt::format("{:.3g}", std::fabs(*e_.exact - e_.value))));
    for (const NumberTerm& term : e_.terms)
      for (const NumberOperand& operand : term.operands)
        if (operand.is_point) return line("  {}", text(Text::number_next, operand.name));
  }

  const NumberExplanation& e_;
  Language language_;
  size_t max_terms_;
  bool colour_;
  std::string out_;
};

nlohmann::ordered_json number_json(double x) {
  if (std::isnan(x)) return nullptr;
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";  // JSON has no infinity
  return x;
}

nlohmann::ordered_json operand_json(const NumberOperand& o) {
  nlohmann::ordered_json json = {{"name", o.name},
                                 {"value", number_json(o.value)},
                                 {"used", number_json(o.used)},
                                 {"is_point", o.is_point}};
  if (!o.stored) return json;
  const StoredBits& s = *o.stored;
  auto& stored = json["stored"] = {{"tensor", s.tensor}, {"type", s.type}, {"row", s.row},
                                   {"block", s.block},   {"at", s.at},     {"bytes", s.bytes}};
  if (s.has_code) {
    stored["code"] = s.code;
    stored["offset"] = s.offset;
    stored["scale"] = s.scale;
    stored["minimum"] = s.minimum;
  }
  return json;
}

}  // namespace

std::string render_text(const NumberExplanation& explanation, Language language, size_t max_terms,
                        const TextStyle& style) {
  return NumberText(explanation, language, max_terms, style).render();
}

void to_json(nlohmann::ordered_json& json, const NumberExplanation& e) {
  json = {{"name", e.name}, {"point", e.point},     {"index", e.index},         {"shape", e.shape},
          {"kind", e.kind}, {"formula", e.formula}, {"class", e.product_class}, {"isa", e.isa}};
  if (!e.weight_rounding.empty())
    json["rounding"] = {{"activations", e.activation_rounding}, {"weights", e.weight_rounding}};
  json["value"] = number_json(e.value);
  json["terms"] = nlohmann::ordered_json::array();
  for (const NumberTerm& term : e.terms) {
    auto operands = nlohmann::ordered_json::array();
    for (const NumberOperand& operand : term.operands) operands.push_back(operand_json(operand));
    json["terms"].push_back({{"operands", std::move(operands)}, {"value", number_json(term.value)}});
  }
  json["n_terms"] = e.n_terms;
  json["rest"] = number_json(e.rest);
  json["sum"] = number_json(e.sum);
  json["steps"] = nlohmann::ordered_json::array();
  for (const NumberStep& s : e.steps)
    json["steps"].push_back({{"formula", s.formula}, {"value", number_json(s.value)}});
  json["recomputed"] = number_json(e.recomputed);
  json["magnitude"] = number_json(e.magnitude);
  json["difference"] = number_json(e.difference);
  json["agrees"] = e.agrees;
  if (e.edited) json["edited"] = true;
  if (e.exact) json["exact"] = number_json(*e.exact);
}

}  // namespace liuli
