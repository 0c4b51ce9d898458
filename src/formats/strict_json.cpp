#include "formats/strict_json.h"

#include <set>
#include <vector>

#include "formats/byte_cursor.h"
#include "liuli/error.h"

namespace liuli {
namespace {

using Json = nlohmann::json;

/// Sees every event of a parse; `problem` keeps the first thing that is wrong.
class Watcher {
 public:
  explicit Watcher(int max_depth) : max_depth_(max_depth) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& value) {
    if (!problem.empty()) return false;
    // The depth of a container is that of the brackets around it.
    if (depth >= max_depth_ && is_start(event))
      problem = fmt::format("nests deeper than {} levels", max_depth_);
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end && !keys_.empty()) keys_.pop_back();
    if (event == Json::parse_event_t::key) add_key(value.get_ref<const std::string&>());
    return problem.empty();
  }

  std::string problem;

 private:
  static bool is_start(Json::parse_event_t event) {
    return event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
  }
  void add_key(const std::string& key) {
    if (!keys_.back().insert(key).second) problem = fmt::format("key {} appears twice", quoted_name(key));
  }

  int max_depth_;
  std::vector<std::set<std::string>> keys_;  ///< of the objects that are open
};

}  // namespace

nlohmann::json parse_json_object(const std::string& place, std::string_view text, int max_depth) {
  const auto fail = [&](const std::string& reason) {
    throw Error(ErrorCode::corrupt_file, fmt::format("{}: {}", place, reason));
  };
  Watcher watcher(max_depth);
  Json object;
  try {
    object = Json::parse(text, std::ref(watcher));
  } catch (const Json::exception& e) {
    // The library quotes what it read last, a string of any length.
    fail(fmt::format("{} bytes are not JSON: {}", text.size(), std::string_view(e.what()).substr(0, 200)));
  }
  if (!watcher.problem.empty()) fail(watcher.problem);
  if (!object.is_object()) fail(fmt::format("is {}, not an object", object.type_name()));
  return object;
}

}  // namespace liuli
