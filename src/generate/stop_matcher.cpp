#include "generate/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace liuli {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  stops_.erase(std::remove(stops_.begin(), stops_.end(), std::string()), stops_.end());
}

std::string StopMatcher::push(const std::string& text) {
  if (stopped_) return "";
  held_ += text;
  size_t first = std::string::npos, longest_beginning = 0;
  for (const std::string& stop : stops_) {
    first = std::min(first, held_.find(stop));
    // The longest end of the text that could still grow into this stop string.
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > longest_beginning; n--)
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) {
        longest_beginning = n;
        break;
      }
  }
  if (first != std::string::npos) {
    stopped_ = true;
    std::string out = held_.substr(0, first);
    held_.clear();
    return out;
  }
  std::string out = held_.substr(0, held_.size() - longest_beginning);
  held_.erase(0, out.size());
  return out;
}

std::string StopMatcher::finish() { return std::exchange(held_, ""); }

}  // namespace liuli
