#include "core/cpu_quota.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

namespace liuli {
namespace {

/// Takes the next word off the front of text.
std::string_view take_word(std::string_view& text) {
  const size_t begin = std::min(text.find_first_not_of(" \t\n"), text.size());
  const size_t end = std::min(text.find_first_of(" \t\n", begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

std::optional<double> positive_number(std::string_view word) {
  long long value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value <= 0) return std::nullopt;
  return static_cast<double>(value);
}

std::string file_text(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A line of /proc/self/cgroup is "id:controllers:path"; v2's line has no controllers.
struct GroupLine {
  std::string_view controllers, path;
};

GroupLine parse_group_line(std::string_view line) {
  const size_t first = line.find(':');
  const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
  if (second == line.npos) return {"-", ""};
  return {line.substr(first + 1, second - first - 1), line.substr(second + 1)};
}

bool lists_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == "cpu") return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

std::optional<double> smaller(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

/// The smallest of quota_at(directory) from base + path up to base itself: every ancestor's limit binds.
template <class QuotaAt>
std::optional<double> smallest_upwards(const std::string& base, std::string_view path, QuotaAt quota_at) {
  std::optional<double> quota;
  std::string group(path);
  for (;;) {
    quota = smaller(quota, quota_at(base + group));
    const size_t slash = group.rfind('/');
    if (slash == group.npos) return quota;
    group.resize(slash);
  }
}

std::optional<double> quota_v2(const std::string& directory) {
  return quota_from_cpu_max(file_text(directory + "/cpu.max"));
}

std::optional<double> quota_v1(const std::string& directory) {
  return quota_from_cfs(file_text(directory + "/cpu.cfs_quota_us"),
                        file_text(directory + "/cpu.cfs_period_us"));
}

}  // namespace

std::optional<double> quota_from_cpu_max(std::string_view text) {
  const auto quota = positive_number(take_word(text));
  const auto period = positive_number(take_word(text));
  if (!quota || !period) return std::nullopt;
  return *quota / *period;
}

std::optional<double> quota_from_cfs(std::string_view quota_us, std::string_view period_us) {
  const auto quota = positive_number(take_word(quota_us));
  const auto period = positive_number(take_word(period_us));
  if (!quota || !period) return std::nullopt;
  return *quota / *period;
}

std::optional<double> cgroup_cpu_quota(const std::string& root, std::string_view self_cgroup) {
  std::optional<double> quota;
  while (!self_cgroup.empty()) {
    const size_t end = std::min(self_cgroup.find('\n'), self_cgroup.size());
    const GroupLine line = parse_group_line(self_cgroup.substr(0, end));
    if (line.controllers.empty()) quota = smaller(quota, smallest_upwards(root, line.path, quota_v2));
    if (lists_cpu(line.controllers))
      quota = smaller(quota, smallest_upwards(root + "/cpu", line.path, quota_v1));
    self_cgroup.remove_prefix(std::min(end + 1, self_cgroup.size()));
  }
  return quota;
}

}  // namespace liuli
