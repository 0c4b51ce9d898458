#include "generate/draft_length.h"

#include <gtest/gtest.h>

#include "generate/drafter.h"

namespace liuli {
namespace {

constexpr double kPass = 1, kRow = 0.2;

// Rounds of a text whose guesses are right `right` at a time; returns the time per token beside one pass per token.
double relative_time(DraftLength& length, int right, int passes) {
  double seconds = 0, tokens = 0;
  for (int i = 0; i < passes; i++) {
    const int n = length.choose(0), accepted = std::min(n, right);
    const double time = kPass + n * kRow;
    length.saw_guesses(0, n, accepted);
    length.saw_pass(n + 1, time);
    seconds += time;
    tokens += 1 + accepted;
  }
  return seconds / (tokens * kPass);
}

TEST(DraftLength, TextThatCannotBeGuessedCostsAFewPerCent) {
  DraftLength length(15, 0.5);
  EXPECT_LT(relative_time(length, 0, 200), 1.05);
}

TEST(DraftLength, GuessesThatAreAlwaysRightAreMadeAsManyAsAllowed) {
  DraftLength length(15, 0.5);
  EXPECT_LT(relative_time(length, 15, 50), 0.3);
  EXPECT_EQ(length.choose(0), 15);
}

TEST(DraftLength, ItStartsAgainWhenTheTextChanges) {
  DraftLength length(15, 0.5);
  relative_time(length, 0, 100);
  EXPECT_LT(relative_time(length, 15, 200), 0.5);
}

// Knows what a pass costs.
DraftLength warm(double prior) {
  DraftLength length(15, prior);
  for (int i = 0; i < 2; i++) length.saw_pass(1, kPass);
  return length;
}

TEST(DraftLength, NothingIsGuessedBeforeAPassAfterTheFirstWasSeen) {
  DraftLength length(15, 0.9);
  EXPECT_EQ(length.choose(0), 0);
  length.saw_pass(1, 10 * kPass);
  EXPECT_EQ(length.choose(0), 0);
  length.saw_pass(1, kPass);
  EXPECT_GT(length.choose(0), 0);
}

TEST(DraftLength, GuessesThatCostMoreThanTheyBringAreNotMade) {
  DraftLength length = warm(0.8);
  length.saw_drafting(1, 2 * kPass);
  EXPECT_EQ(length.choose(0), 0);
}

TEST(DraftLength, KindsOfGuessesHaveRecordsOfTheirOwn) {
  DraftLength length = warm(0.5);
  for (int i = 0; i < 20; i++) length.saw_guesses(3, 4, 0);
  EXPECT_EQ(length.choose(3), 0);
  EXPECT_GT(length.choose(2), 0);
}

std::vector<int> guesses(const std::vector<int>& text, int n) {
  LookupDrafter drafter;
  if (drafter.look(text) < 0) return {};
  const auto ids = drafter.propose(text, n, Sampler({}));
  return {ids.begin(), ids.end()};
}

TEST(LookupDrafter, GoesOnAsTheTextDidAfterItsLongestMatch) {
  EXPECT_EQ(guesses({1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3}, 2),
            (std::vector<int>{4, 9}));                                     // 1 2 3 beats the later 2 3
  EXPECT_EQ(guesses({2, 3, 4, 2, 3, 5, 2, 3}, 1), (std::vector<int>{5}));  // of equal matches the latest
}

TEST(LookupDrafter, ARepetitionGoesOnBeyondTheEndOfTheText) {
  EXPECT_EQ(guesses({7, 1, 2, 3, 1, 2, 3, 1, 2}, 5), (std::vector<int>{3, 1, 2, 3, 1}));
}

TEST(LookupDrafter, TextThatNeverOccurredGivesNoGuess) {
  EXPECT_TRUE(guesses({1, 2, 3, 4}, 3).empty());
  EXPECT_TRUE(guesses({1}, 3).empty());
  EXPECT_TRUE(guesses({5, 1, 2, 1}, 3).empty());  // one token alone is no match
}

TEST(LookupDrafter, LongerMatchesAreTrustedMore) {
  LookupDrafter drafter;
  const int two = drafter.look(std::vector<int>{1, 2, 9, 8, 1, 2});
  const int three = drafter.look(std::vector<int>{1, 2, 3, 9, 1, 2, 3});
  EXPECT_GE(two, 0);
  EXPECT_GT(three, two);
}

}  // namespace
}  // namespace liuli
