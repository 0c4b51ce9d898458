// Expected values were derived from the published algorithms by an independent program; those of the state
// {1, 2, 3, 4} are also the ones other implementations of xoshiro256** test against.
#include "core/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "liuli/error.h"

namespace liuli {
namespace {

TEST(Rng, FollowsTheReferenceSequenceOfXoshiro256StarStar) {
  Rng rng = Rng::from_state({1, 2, 3, 4});
  for (uint64_t expected : {11520u, 0u, 1509978240u}) EXPECT_EQ(rng.next_u64(), expected);
  for (uint64_t expected :
       {1215971899390074240u, 1216172134540287360u, 607988272756665600u, 16172922978634559625u,
        8476171486693032832u, 10595114339597558777u, 2904607092377533576u})
    EXPECT_EQ(rng.next_u64(), expected);
}

TEST(Rng, SeedsItsStateWithSplitmix64) {
  const Rng::State expected = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                               4593380528125082431u};
  EXPECT_EQ(Rng(1234567).state(), expected);
  EXPECT_EQ(Rng(0).next_u64(), 11091344671253066420u);
  EXPECT_EQ(Rng(42).next_u64(), 1546998764402558742u);
}

TEST(Rng, StreamsOfOneSeedDiffer) {
  Rng stream(42, 3);
  EXPECT_EQ(stream.next_u64(), 4948656595234719283u);
  EXPECT_EQ(stream.next_u64(), 12205422923977161000u);
  EXPECT_NE(Rng(42, 1).state(), Rng(42, 2).state());
  EXPECT_EQ(Rng(42, 0).state(), Rng(42).state());
}

TEST(Rng, UniformIsTheUpper53Bits) {
  Rng rng(42);
  for (double expected : {0.08386297105988216, 0.3789802506626686, 0.6800434110281394})
    EXPECT_EQ(rng.uniform(), expected);
}

TEST(Rng, BelowFollowsItsSequenceAndIsUniform) {
  Rng rng(42);
  for (uint64_t expected : {2u, 2u, 9u, 3u, 6u, 4u, 4u, 7u}) EXPECT_EQ(rng.below(10), expected);
  std::vector<int> counts(7, 0);
  for (int i = 0; i < 70000; i++) counts[rng.below(7)]++;
  for (int count : counts) EXPECT_NEAR(count, 10000, 500);  // five standard deviations
  EXPECT_EQ(rng.below(1), 0u);
}

TEST(Rng, NormalFollowsBoxMuller) {
  Rng rng(42);
  for (double expected : {-0.303263064678738, 1.3438117634372806, 0.3834617912676943})
    EXPECT_NEAR(rng.normal(), expected, 1e-14);
}

TEST(Rng, NormalHasMeanZeroVarianceOneAndNormalTails) {
  Rng rng(7);
  constexpr int n = 200000;
  double sum = 0, squares = 0, fourth = 0;
  int beyond_two = 0;
  for (int i = 0; i < n; i++) {
    const double x = rng.normal();
    sum += x, squares += x * x, fourth += x * x * x * x, beyond_two += std::abs(x) > 2;
  }
  EXPECT_NEAR(sum / n, 0, 0.012);
  EXPECT_NEAR(squares / n, 1, 0.016);
  EXPECT_NEAR(fourth / n, 3, 0.12);
  EXPECT_NEAR(beyond_two / double{n}, 0.0455, 0.0025);
}

TEST(Rng, ASavedStateContinuesTheSequence) {
  Rng rng(5);
  for (int i = 0; i < 10; i++) rng.next_u64();
  Rng copy = Rng::from_state(rng.state());
  for (int i = 0; i < 10; i++) EXPECT_EQ(copy.next_u64(), rng.next_u64());
  EXPECT_THROW(Rng::from_state({}), Error);
}

}  // namespace
}  // namespace liuli
