#include "generate/stop_matcher.h"

#include <gtest/gtest.h>

namespace liuli {
namespace {

TEST(StopMatcher, StopsBeforeTheStringWhereverItIsCut) {
  const std::string text = "one two STOP three";
  for (size_t cut = 0; cut <= text.size(); cut++) {
    StopMatcher matcher({"STOP"});
    std::string out = matcher.push(text.substr(0, cut));
    out += matcher.push(text.substr(cut));
    EXPECT_TRUE(matcher.stopped()) << cut;
    EXPECT_EQ(out + matcher.finish(), "one two ") << cut;
  }
}

TEST(StopMatcher, GivesBackABeginningThatCameToNothing) {
  StopMatcher matcher({"</end>"});
  EXPECT_EQ(matcher.push("a</en"), "a");
  EXPECT_EQ(matcher.push("tity"), "</entity");
  EXPECT_EQ(matcher.push("</"), "");
  EXPECT_EQ(matcher.finish(), "</");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, TheEarliestOfSeveralStringsWins) {
  StopMatcher matcher({"bc", "ab", ""});
  EXPECT_EQ(matcher.push("xabc"), "x");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.push("more"), "");
}

TEST(StopMatcher, WithoutStringsEverythingPasses) {
  StopMatcher matcher({});
  EXPECT_EQ(matcher.push("any text"), "any text");
  EXPECT_EQ(matcher.finish(), "");
}

}  // namespace
}  // namespace liuli
