// How many tokens to guess ahead.
#pragma once
#include <array>

namespace liuli {

/// Weighs what guesses brought against what they cost, both as measured on the way. A pass that checks n guesses, each of
/// which is right with probability p if all before it were, yields Σ_{i≤n} pⁱ tokens and takes base + n · (row + guess)
/// seconds; choose() takes the n with most tokens per second. Where that is 0 the record fades, so that guessing is tried
/// again now and then: text that cannot be guessed costs a few per cent.
class DraftLength {
 public:
  static constexpr int kTrusts = 8;  ///< kinds of guesses, each with a record of its own

  /// prior: the p of a kind without a record.
  DraftLength(int longest, double prior) : longest_(longest), prior_(prior) {}

  /// The number of guesses to ask for, 0 … longest. 0 until two passes without guesses were seen,
  /// to compare with (the first one of all is slow).
  int choose(int trust);
  /// Of `drafted` guesses the first `accepted` were right.
  void saw_guesses(int trust, int drafted, int accepted);
  /// A pass of `rows` rows took so long.
  void saw_pass(int rows, double seconds);
  /// Making `drafted` guesses took so long.
  void saw_drafting(int drafted, double seconds);

 private:
  struct Record {
    double right = 0, tried = 0;
  };
  double probability(const Record& record) const;

  int longest_;
  double prior_;
  bool warm_ = false;                        ///< a pass was seen
  double base_ = 0, row_ = -1, guess_ = -1;  ///< seconds; 0 or less: not measured yet
  std::array<Record, kTrusts> records_;
};

}  // namespace liuli
