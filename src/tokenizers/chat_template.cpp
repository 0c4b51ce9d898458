#include "tokenizers/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "liuli/error.h"
#include "tokenizers/jinja_interpreter.h"

namespace liuli {
namespace {

using Json = nlohmann::ordered_json;
using jinja::Value;

// Roles that templates know. Some templates build a control token around the role ('<|' + role + '|>'), so a
// role is not treated as the user's when it is one of these words; any other role is.
constexpr std::string_view kRoles[] = {"system", "developer", "user",    "assistant",   "tool",
                                       "model",  "function",  "ipython", "observation", "tool_response"};

/// Turns JSON into values of the template language.
class JsonReader {
 public:
  JsonReader(jinja::Runtime& runtime, bool from_user) : runtime_(runtime), from_user_(from_user) {}

  Value read(const Json& json, int depth = 0) {
    if (depth > jinja::Limits::kContainerDepth) runtime_.fail("the variables are nested too deep");
    switch (json.type()) {
      case Json::value_t::string:
        return runtime_.text(json.get_ref<const std::string&>(), from_user_);
      case Json::value_t::boolean:
        return json.get<bool>();
      case Json::value_t::number_integer:
        return json.get<int64_t>();
      case Json::value_t::number_unsigned:
        return unsigned_integer(json.get<uint64_t>());
      case Json::value_t::number_float:
        return json.get<double>();
      case Json::value_t::array:
        return array(json, depth);
      case Json::value_t::object:
        return object(json, depth);
      default:
        return jinja::None{};
    }
  }

 private:
  Value unsigned_integer(uint64_t number) {
    if (number > INT64_MAX) {
      runtime_.fail(fmt::format("the integer {} needs more than 63 bits", number), ErrorCode::unsupported);
    }
    return static_cast<int64_t>(number);
  }

  Value array(const Json& json, int depth) {
    std::vector<Value> items;
    for (const Json& item : json) items.push_back(read(item, depth + 1));
    return runtime_.list(std::move(items));
  }

  Value object(const Json& json, int depth) {
    std::vector<std::pair<Value, Value>> entries;
    for (const auto& [name, value] : json.items()) {
      const bool known_role =
          name == "role" && value.is_string() && is_role(value.get_ref<const std::string&>());
      Value read_value = known_role ? runtime_.text(value.get<std::string>(), false) : read(value, depth + 1);
      entries.emplace_back(runtime_.text(name, from_user_), std::move(read_value));
    }
    return runtime_.dict(std::move(entries));
  }

  static bool is_role(const std::string& word) {
    return std::find(std::begin(kRoles), std::end(kRoles), word) != std::end(kRoles);
  }

  jinja::Runtime& runtime_;
  bool from_user_;
};

void add_variables(jinja::Runtime& runtime, const Json& json, bool from_user,
                   jinja::Interpreter::Variables& out) {
  if (json.is_null()) return;
  if (!json.is_object()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("chat template variables must be a JSON object, not {}", json.type_name()));
  }
  JsonReader reader(runtime, from_user);
  for (const auto& [name, value] : json.items()) out.emplace_back(name, reader.read(value));
}

std::vector<TextSpan> spans_of(const jinja::Text& text) {
  std::vector<TextSpan> spans;
  const auto add = [&](size_t begin, size_t end, bool from_user) {
    if (begin < end) spans.push_back({text.bytes().substr(begin, end - begin), from_user});
  };
  size_t at = 0;
  for (const jinja::Text::Range& range : text.user_ranges()) {
    add(at, range.begin, false);
    add(range.begin, range.end, true);
    at = range.end;
  }
  add(at, text.size(), false);
  return spans;
}

}  // namespace

struct ChatTemplate::Program {
  jinja::Body body;
};

ChatTemplate::ChatTemplate(std::string source)
    : source_(std::move(source)), program_(std::make_unique<Program>(Program{jinja::parse(source_)})) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;

std::vector<TextSpan> ChatTemplate::render(const Json& user_variables, const Json& trusted) const {
  jinja::Runtime runtime;
  jinja::Interpreter::Variables variables;
  add_variables(runtime, user_variables, true, variables);
  add_variables(runtime, trusted, false, variables);  // later ones win: a user cannot replace bos_token
  return spans_of(jinja::Interpreter(runtime, std::move(variables)).run(program_->body));
}

}  // namespace liuli
