// How many CPUs a control group lets this process use: containers cut time by quota, which no affinity mask
// shows.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace liuli {

/// CPUs granted by the text of cgroup v2's `cpu.max` ("200000 100000" is 2), or nothing for "max" or
/// nonsense.
std::optional<double> quota_from_cpu_max(std::string_view text);

/// CPUs granted by cgroup v1's two files in microseconds; a quota of −1 means no limit.
std::optional<double> quota_from_cfs(std::string_view quota_us, std::string_view period_us);

/// The smallest quota on the way from this process's group up to the root, or nothing where none is set.
/// root is /sys/fs/cgroup, self_cgroup the text of /proc/self/cgroup. Inside a container the latter may name
/// a path of the host that is not mounted; then the mount's own root holds the limit, so absent files are
/// passed over.
std::optional<double> cgroup_cpu_quota(const std::string& root, std::string_view self_cgroup);

}  // namespace liuli
