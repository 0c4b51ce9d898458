#include "core/cpu_quota.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace liuli {
namespace {

namespace fs = std::filesystem;

/// A folder that looks like /sys/fs/cgroup and goes away with the test.
class FakeCgroup {
 public:
  FakeCgroup() : root_(fs::temp_directory_path() / fs::path(testing::TempDir() + "liuli_cgroup").filename()) {
    fs::remove_all(root_);
  }
  ~FakeCgroup() { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::string root() const { return root_.string(); }

 private:
  fs::path root_;
};

TEST(CpuQuota, ReadsCpuMax) {
  EXPECT_EQ(quota_from_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(quota_from_cpu_max("max 100000\n"), std::nullopt);
  EXPECT_EQ(quota_from_cpu_max(""), std::nullopt);
  EXPECT_EQ(quota_from_cpu_max("100000"), std::nullopt);
  EXPECT_EQ(quota_from_cpu_max("100000 0"), std::nullopt);
}

TEST(CpuQuota, ReadsCfsFiles) {
  EXPECT_EQ(quota_from_cfs("400000\n", "100000\n"), 4.0);
  EXPECT_EQ(quota_from_cfs("-1\n", "100000\n"), std::nullopt);
}

TEST(CpuQuota, TheSmallestLimitOnTheWayUpBinds) {
  FakeCgroup group;
  group.write("cpu.max", "800000 100000\n");
  group.write("a/cpu.max", "200000 100000\n");
  group.write("a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(group.root(), "0::/a/b\n"), 2.0);
  EXPECT_EQ(cgroup_cpu_quota(group.root(), "0::/\n"), 8.0);
}

TEST(CpuQuota, AHostPathThatIsNotMountedFallsBackToTheRoot) {
  FakeCgroup group;
  group.write("cpu/cpu.cfs_quota_us", "300000\n");
  group.write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpu_quota(group.root(), "5:cpuset:/\n4:cpu,cpuacct:/docker/0123\n0::/system\n"), 3.0);
  EXPECT_EQ(cgroup_cpu_quota(group.root(), "5:cpuset:/\n"), std::nullopt);
}

TEST(CpuQuota, NonsenseMeansNoLimit) {
  FakeCgroup group;
  EXPECT_EQ(cgroup_cpu_quota(group.root(), "garbage\n\n::\n:"), std::nullopt);
}

}  // namespace
}  // namespace liuli
