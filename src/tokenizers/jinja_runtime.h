// What a running template may use up, and how it makes values and complains. Templates are untrusted
// programs: every step and every byte they touch is paid for here, so that any of them ends soon and in
// bounded memory.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "liuli/error.h"
#include "tokenizers/jinja_value.h"

namespace liuli::jinja {

/// Bounds of one rendering. A conversation of 500 messages uses about 1 % of them with any published
/// template.
struct Limits {
  static constexpr int64_t kSteps = 3'000'000;  ///< expressions and statements evaluated
  static constexpr size_t kWorkBytes = size_t{256}
                                       << 20;  ///< bytes made, copied, compared or searched, in total
  static constexpr size_t kOutputBytes = size_t{16} << 20;
  static constexpr int kRecursion = 500;      ///< nested expressions, statements and macro calls
  static constexpr int kContainerDepth = 64;  ///< lists in dicts in lists …
};

class Runtime {
 public:
  /// Fails with the line that is being run. Errors: `code`.
  [[noreturn]] void fail(const std::string& what, ErrorCode code = ErrorCode::invalid_argument) const;
  void set_line(int line) { line_ = line; }
  int line() const { return line_; }

  void step();
  /// Pays for work on so many bytes, before it is done.
  void charge(size_t bytes);

  Value text(Text text);
  Value text(std::string bytes, bool from_user) { return this->text(Text(std::move(bytes), from_user)); }
  Value list(std::vector<Value> items, bool is_tuple = false);
  Value dict(std::vector<std::pair<Value, Value>> entries);
  Namespace* make_namespace();
  void set_attribute(Namespace& space, std::string_view name, Value value);

  /// Counts nesting while alive.
  class Level {
   public:
    explicit Level(Runtime& runtime) : runtime_(runtime) {
      if (runtime_.level_ >= Limits::kRecursion) runtime_.too_deep();
      ++runtime_.level_;
    }
    ~Level() { --runtime_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Runtime& runtime_;
  };

 private:
  [[noreturn]] void too_deep() const;
  int checked_depth(int depth) const;

  int line_ = 1;
  int level_ = 0;
  int64_t steps_ = 0;
  size_t work_bytes_ = 0;
  std::deque<Namespace> namespaces_;
};

}  // namespace liuli::jinja
