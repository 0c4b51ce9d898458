#include "tokenizers/tokenizer_file.h"

#include <fmt/format.h>

#include "liuli/error.h"

namespace liuli {
namespace {

using nlohmann::json;

[[noreturn]] void corrupt_file(const std::string& what) {
  throw Error(ErrorCode::corrupt_file, "tokenizer.json: " + what);
}

// Receives the events of nlohmann's parser. Outside the two lists it builds a document.
class Reader : public nlohmann::json_sax<json> {
 public:
  explicit Reader(TokenizerFile& file) : file_(file) {}

  bool null() override { return value(nullptr); }
  bool boolean(bool v) override { return value(v); }
  bool number_integer(number_integer_t v) override { return number(v, static_cast<double>(v)); }
  bool number_unsigned(number_unsigned_t v) override {
    return number(v > INT64_MAX ? INT64_MAX : static_cast<int64_t>(v), static_cast<double>(v));
  }
  bool number_float(number_float_t v, const string_t&) override {
    if (list_ == List::none) return value(v);
    if (list_ != List::scored) unexpected("a number");
    score_ = v;
    return true;
  }
  bool string(string_t& v) override {
    if (list_ == List::none) return value(std::move(v));
    if (list_ == List::merges && !in_item_)
      file_.merges.push_back(split(v));
    else if (list_ == List::vocabulary || item_.size() >= 2 || !in_item_)
      unexpected("a string");
    else
      item_.push_back(std::move(v));
    return true;
  }
  bool binary(binary_t&) override { return true; }

  bool start_object(std::size_t) override {
    if (list_ != List::none) unexpected("an object");
    if (inside_model("vocab")) return start(List::vocabulary);
    return open(json::object());
  }
  bool key(string_t& v) override {
    if (list_ == List::vocabulary)
      item_.assign(1, std::move(v));
    else
      keys_.back() = std::move(v);
    return true;
  }
  bool end_object() override { return list_ == List::vocabulary ? start(List::none) : close(); }

  bool start_array(std::size_t) override {
    if (list_ == List::none) {
      if (inside_model("vocab")) return start(List::scored);
      if (inside_model("merges")) return start(List::merges);
      return open(json::array());
    }
    if (list_ == List::vocabulary || in_item_) unexpected("an array");
    in_item_ = true;
    score_.reset();
    item_.clear();
    return true;
  }
  bool end_array() override {
    if (list_ == List::none) return close();
    if (!in_item_) return start(List::none);
    in_item_ = false;
    if (list_ == List::scored) {
      if (item_.size() != 1 || !score_) unexpected("an item that is not [token, score]");
      file_.scored.emplace_back(std::move(item_[0]), *score_);
    } else {
      if (item_.size() != 2) unexpected("a merge that is not [left, right]");
      file_.merges.emplace_back(std::move(item_[0]), std::move(item_[1]));
    }
    return true;
  }

  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception& e) override {
    corrupt_file(fmt::format("no JSON at byte {}: {}", at, e.what()));
  }

 private:
  enum class List { none, vocabulary, scored, merges };

  bool start(List list) {
    list_ = list;
    return true;
  }
  // Whether the value that begins now is this field of the model.
  bool inside_model(std::string_view field) const {
    return keys_.size() == 2 && keys_[0] == "model" && keys_[1] == field;
  }
  [[noreturn]] void unexpected(const char* what) const {
    corrupt_file(fmt::format("{} inside the model's {} (item {})", what,
                             list_ == List::merges ? "merges" : "vocab",
                             list_ == List::merges ? file_.merges.size() : file_.vocabulary.size()));
  }
  std::pair<std::string, std::string> split(const std::string& merge) const {
    const size_t space = merge.find(' ');
    if (space == std::string::npos || merge.find(' ', space + 1) != std::string::npos)
      unexpected("a merge that is not \"left right\"");
    return {merge.substr(0, space), merge.substr(space + 1)};
  }

  bool number(int64_t whole, double v) {
    if (list_ == List::none) return value(whole);
    if (list_ == List::merges) unexpected("a number");
    if (list_ == List::scored)
      score_ = v;
    else
      file_.vocabulary.emplace_back(std::move(item_.at(0)), whole);
    return true;
  }
  bool value(json v) {
    if (list_ != List::none) unexpected(v.type_name());
    add(std::move(v));
    return true;
  }
  json* add(json v) {
    if (open_.empty()) {
      file_.rest = std::move(v);
      return &file_.rest;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(v));
      return &parent.back();
    }
    json& place = parent[keys_.back()];
    place = std::move(v);
    return &place;
  }
  bool open(json container) {
    constexpr size_t kDeepest = 64;
    if (open_.size() >= kDeepest) corrupt_file("nested too deep");
    open_.push_back(add(std::move(container)));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  TokenizerFile& file_;
  std::vector<json*> open_;
  std::vector<std::string> keys_;  // the key being read in every open container
  List list_ = List::none;
  bool in_item_ = false;
  std::vector<std::string> item_;
  std::optional<double> score_;
};

}  // namespace

TokenizerFile parse_tokenizer_file(std::string_view text) {
  TokenizerFile file;
  Reader reader(file);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  if (!file.rest.is_object())
    corrupt_file(fmt::format("the file holds {}, no object", file.rest.type_name()));
  return file;
}

JsonPart::JsonPart(const nlohmann::json& part, std::string place) : json_(part), place_(std::move(place)) {
  if (!json_.is_object()) corrupt(fmt::format("is {}, expected an object", json_.type_name()));
}

void JsonPart::corrupt(const std::string& what) const {
  throw Error(ErrorCode::corrupt_file, fmt::format("{} {}", place_, what));
}
void JsonPart::unsupported(const std::string& what) const {
  throw Error(ErrorCode::unsupported, fmt::format("{}: {}", place_, what));
}

const nlohmann::json* JsonPart::find(const char* name) const {
  const auto found = json_.find(name);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

bool JsonPart::flag(const char* name, bool otherwise) const {
  const nlohmann::json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean())
    corrupt(fmt::format("\"{}\" is {}, expected a boolean", name, value->type_name()));
  return value->get<bool>();
}

int64_t JsonPart::integer(const char* name, int64_t otherwise) const {
  const nlohmann::json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_number_integer())
    corrupt(fmt::format("\"{}\" is {}, expected an integer", name, value->type_name()));
  return value->get<int64_t>();
}

double JsonPart::number(const char* name, double otherwise) const {
  const nlohmann::json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_number()) corrupt(fmt::format("\"{}\" is {}, expected a number", name, value->type_name()));
  return value->get<double>();
}

std::string JsonPart::text(const char* name, const std::string& otherwise) const {
  const nlohmann::json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_string()) corrupt(fmt::format("\"{}\" is {}, expected a string", name, value->type_name()));
  return value->get<std::string>();
}

std::string JsonPart::text(const char* name) const {
  if (!has(name)) corrupt(fmt::format("has no \"{}\"", name));
  return text(name, "");
}

JsonPart JsonPart::part(const char* name) const {
  const nlohmann::json* value = find(name);
  if (value == nullptr) corrupt(fmt::format("has no \"{}\"", name));
  return JsonPart(*value, fmt::format("{}.{}", place_, name));
}

std::vector<JsonPart> JsonPart::parts(const char* name) const {
  std::vector<JsonPart> out;
  const nlohmann::json* value = find(name);
  if (value == nullptr) return out;
  if (!value->is_array()) corrupt(fmt::format("\"{}\" is {}, expected a list", name, value->type_name()));
  for (const nlohmann::json& item : *value)
    out.emplace_back(item, fmt::format("{}.{}[{}]", place_, name, out.size()));
  return out;
}

}  // namespace liuli
