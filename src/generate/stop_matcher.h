// Stop strings in a stream of text.
#pragma once
#include <string>
#include <vector>

namespace liuli {

/// Passes text on, but holds back what could be the beginning of a stop string.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops);

  /// Text that can be shown now. Once a stop string is complete, text before it is returned and stopped() is
  /// true.
  std::string push(const std::string& text);
  /// What was held back, at the end of the stream ("" if stopped).
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace liuli
