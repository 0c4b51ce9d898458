// Edits as text: the short form and JSON.
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/edit_values.h"
#include "liuli/edit.h"
#include "liuli/engine.h"
#include "model/point.h"
#include "trace/point_selection.h"

namespace liuli {
namespace {

using Ranges = std::vector<IndexRange>;

[[noreturn]] void bad(const std::string& place, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", place, why));
}

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

template <class T>
bool parse_number(const std::string& text, T& value) {
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

// "3", "-1", "2:5", ":", "4:", "last", "all"
IndexRange parse_range(const std::string& place, const std::string& text) {
  if (text == "all") return {};
  if (text == "last") return {-1, IndexRange::kEnd};
  const size_t colon = text.find(':');
  IndexRange range;
  if (colon == std::string::npos) {
    if (!parse_number(text, range.begin)) bad(place, fmt::format("'{}' is no index", text));
    // −1 alone is the last one: its range has no end to count to.
    range.end = range.begin == -1 ? IndexRange::kEnd : range.begin + 1;
    return range;
  }
  const std::string begin = trimmed(text.substr(0, colon)), end = trimmed(text.substr(colon + 1));
  if ((!begin.empty() && !parse_number(begin, range.begin)) ||
      (!end.empty() && !parse_number(end, range.end)))
    bad(place, fmt::format("'{}' is no range", text));
  return range;
}

// The kinds of number that an index list may hold in JSON.
Ranges json_ranges(const std::string& place, const nlohmann::json& json) {
  if (json.is_string()) return {parse_range(place, trimmed(json.get<std::string>()))};
  if (json.is_number_integer()) return {parse_range(place, fmt::format("{}", json.get<int>()))};
  if (!json.is_array()) bad(place, "expected an index, a list of them, or a range like \"2:5\"");
  Ranges ranges;
  for (const auto& item : json) {
    if (item.is_array()) bad(place, "an index list holds numbers and ranges");
    for (const IndexRange& range : json_ranges(place, item)) ranges.push_back(range);
  }
  return ranges;
}

std::vector<int> reference_ids(const Engine& engine, const std::string& text) {
  if (text.starts_with('[')) {
    const auto json = nlohmann::json::parse(text);
    return json.get<std::vector<int>>();
  }
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return engine.tokenize(quoted ? text.substr(1, text.size() - 2) : text, true, true);
}

EditAction action_named(const std::string& place, const std::string& name) {
  constexpr std::pair<const char*, EditAction> kActions[] = {
      {"set", EditAction::set},     {"add", EditAction::add},        {"scale", EditAction::scale},
      {"zero", EditAction::set},    {"mean", EditAction::mean},      {"resample", EditAction::resample},
      {"patch", EditAction::patch}, {"freeze", EditAction::freeze},  {"knock_out", EditAction::knock_out},
      {"drop", EditAction::drop},   {"reroute", EditAction::reroute}};
  std::string names;
  for (const auto& [known, action] : kActions) {
    if (name == known) return action;
    names.append(names.empty() ? "" : ", ").append(known);
  }
  bad(place, fmt::format("no action \"{}\"; there are: {}", name, names));
}

bool is_weight(const std::string& at) { return at.ends_with(".weight"); }

void as_weight(Edit& edit) {
  if (!is_weight(edit.at)) return;
  edit.row_action = edit.action;
  edit.action = EditAction::weight;
}

// The right side of "=" that is no number: "@file", "patch:…", "mean", "drop:renormalise", "reroute:5"
void parse_named_value(const Engine& engine, const std::string& place, const std::string& text, Edit& edit) {
  if (text.starts_with('@')) {
    edit.value = read_edit_vector(text.substr(1));
    return;
  }
  const size_t colon = text.find(':');
  const std::string argument = colon == std::string::npos ? "" : trimmed(text.substr(colon + 1));
  edit.action = action_named(place, text.substr(0, colon));
  if (edit.action == EditAction::reroute) {
    if (!parse_number(argument, edit.to_expert)) bad(place, "reroute:N names the expert that takes over");
  } else if (edit.action == EditAction::drop) {
    edit.renormalise = argument == "renormalise";
    if (!argument.empty() && !edit.renormalise)
      bad(place, fmt::format("drop:renormalise, not drop:{}", argument));
  } else if (!argument.empty()) {
    edit.from = reference_ids(engine, argument);
  }
}

std::vector<Ranges> parse_index(const std::string& place, std::string_view text) {
  std::vector<Ranges> index;
  while (true) {
    const size_t comma = text.find(',');
    index.push_back(
        {parse_range(place, trimmed(text.substr(0, comma)) == ":" ? "all" : trimmed(text.substr(0, comma)))});
    if (comma == std::string_view::npos) return index;
    text.remove_prefix(comma + 1);
  }
}

// Where an axis of the point at `at` is, by its name in JSON.
size_t axis_of(const Engine& engine, const std::string& place, const Edit& edit, const std::string& key) {
  if (edit.action == EditAction::weight || edit.action == EditAction::drop ||
      edit.action == EditAction::reroute) {
    if (key == "tokens" && edit.action != EditAction::weight) return 0;
    bad(place, fmt::format("\"{}\" does not fit what is changed here", key));
  }
  const auto& shape = point_info(select_places(engine.config(), {edit.at}).front().point).shape;
  for (size_t i = 0; i < shape.size(); i++) {
    const bool head = shape[i] == Axis::head || shape[i] == Axis::kv_head;
    const bool is = key == "tokens"  ? shape[i] == Axis::token
                    : key == "keys"  ? shape[i] == Axis::key
                    : key == "heads" ? head
                                     : i + 1 == shape.size() && shape[i] != Axis::key;
    if (is) return i;
  }
  bad(place, fmt::format("{} has no {}", edit.at, key));
}

class JsonEdit {
 public:
  JsonEdit(const Engine& engine, const std::string& place, const nlohmann::json& json)
      : engine_(engine), place_(place), json_(json) {}

  Edit read() {
    if (!json_.is_object()) bad(place_, "an edit is a JSON object");
    if (json_.contains("edit")) return parse_edit(engine_, json_["edit"].get<std::string>());
    check_keys();
    edit_.at = json_.at(json_.contains("weight") ? "weight" : "at").get<std::string>();
    const std::string what = json_.at("do").get<std::string>();
    edit_.action = action_named(place_, what);
    as_weight(edit_);
    read_value(what);
    read_reference();
    read_index();
    edit_.seed = json_.value("seed", uint64_t{0});
    edit_.to_expert = json_.value("to", -1);
    edit_.renormalise = json_.value("renormalise", false);
    return edit_;
  }

 private:
  void check_keys() const {
    constexpr const char* kKeys[] = {"at",    "weight", "tokens",  "heads",      "keys",  "coordinates",
                                     "index", "row",    "columns", "do",         "value", "vector",
                                     "from",  "seed",   "to",      "renormalise"};
    for (const auto& item : json_.items()) {
      bool known = false;
      for (const char* key : kKeys) known |= item.key() == key;
      if (!known) bad(place_, fmt::format("no key \"{}\" (docs/edits.md lists them)", item.key()));
    }
  }

  void read_value(const std::string& what) {
    const bool needs = what == "set" || what == "add" || what == "scale";
    const bool given = json_.contains("value") || json_.contains("vector");
    if (needs != given)
      bad(place_, fmt::format("\"{}\" {} a value or vector", what, needs ? "needs" : "takes no"));
    if (!given) return;
    const auto& value = json_.contains("value") ? json_["value"] : json_["vector"];
    if (value.is_string())
      edit_.value = read_edit_vector(value.get<std::string>());
    else
      edit_.value =
          value.is_array() ? value.get<std::vector<float>>() : std::vector<float>{value.get<float>()};
  }

  void read_reference() {
    if (!json_.contains("from")) return;
    const auto& from = json_["from"];
    if (from.is_string()) {
      edit_.from = engine_.tokenize(from.get<std::string>(), true, true);
      return;
    }
    if (from.contains("prompt")) edit_.from = engine_.tokenize(from["prompt"].get<std::string>(), true, true);
    if (from.contains("ids")) edit_.from = from["ids"].get<std::vector<int>>();
    if (from.contains("token")) edit_.from_token = from["token"].get<int>();
  }

  void put(size_t axis, const nlohmann::json& json) {
    if (edit_.index.size() <= axis) edit_.index.resize(axis + 1);
    edit_.index[axis] = json_ranges(place_, json);
  }

  void read_index() {
    if (json_.contains("index"))
      for (size_t axis = 0; axis < json_["index"].size(); axis++) put(axis, json_["index"][axis]);
    for (const char* key : {"tokens", "heads", "keys", "coordinates"})
      if (json_.contains(key)) put(axis_of(engine_, place_, edit_, key), json_[key]);
    if (json_.contains("row")) put(0, json_["row"]);
    if (json_.contains("columns")) put(1, json_["columns"]);
  }

  const Engine& engine_;
  const std::string& place_;
  const nlohmann::json& json_;
  Edit edit_;
};

}  // namespace

Edit parse_edit(const Engine& engine, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    bad("edit '" + text + "'", "expected POINT[INDEX] = VALUE (or *=, +=)");
  const std::string place = "edit '" + text + "'";
  Edit edit;
  size_t end = equals;
  if (text[equals - 1] == '*') edit.action = EditAction::scale, end--;
  if (text[equals - 1] == '+') edit.action = EditAction::add, end--;
  std::string left = trimmed(text.substr(0, end));
  if (left.ends_with(']')) {
    const size_t open = left.find('[');
    if (open == std::string::npos) bad(place, "']' without '['");
    edit.index = parse_index(place, std::string_view(left).substr(open + 1, left.size() - open - 2));
    left = trimmed(left.substr(0, open));
  }
  edit.at = left;
  const std::string right = trimmed(text.substr(equals + 1));
  float number = 0;
  if (parse_number(right, number)) {
    edit.value = {number};
  } else {
    if (end != equals && !right.starts_with('@'))
      bad(place, fmt::format("'{}' is no number and no @FILE", right));
    parse_named_value(engine, place, right, edit);
  }
  as_weight(edit);
  return edit;
}

std::vector<Edit> parse_edits_json(const Engine& engine, const std::string& json, const std::string& place) {
  std::vector<Edit> edits;
  try {
    auto list = nlohmann::json::parse(json);
    if (!list.is_array()) list = nlohmann::json::array({list});
    for (size_t i = 0; i < list.size(); i++) {
      const std::string at = fmt::format("{}, edit {}", place, i);
      try {
        edits.push_back(JsonEdit(engine, at, list[i]).read());
      } catch (const nlohmann::json::exception& e) {
        bad(at, e.what());
      }
    }
  } catch (const nlohmann::json::exception& e) {
    bad(place, e.what());
  }
  return edits;
}

}  // namespace liuli
