// A small made-up language to learn: sentences of characters, with something to learn at every distance.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "train/train_step.h"

namespace liuli::lab {

/// Sentences such as "the red fox sees two birds; the bird sings." from a fixed grammar (words, agreement of number,
/// echoes of what was named before), then a few verses of Tang poets in their reading, all in 28 characters. The same
/// seed gives the same text everywhere.
class Language28 {
 public:
  static constexpr int64_t kVocabulary = 28;  ///< a … z, space, full stop

  explicit Language28(uint64_t seed, int64_t characters = 40000);

  const std::vector<int>& ids() const { return ids_; }
  /// `batch` windows of `length` characters, each to be continued by one; a pure function of seed and step.
  std::vector<Example> batch(int64_t step, int64_t batch, int64_t length) const;
  /// Windows of the last tenth, which batch() never draws.
  std::vector<Example> held_out(int64_t count, int64_t length) const;
  /// Entropy in nats of a character without what stands before it, and with the one before: what a model that learnt
  /// nothing, or only pairs, would reach.
  double unigram_entropy() const;
  double bigram_entropy() const;
  static std::string text(const std::vector<int>& ids);

 private:
  Example window(int64_t at, int64_t length) const;

  uint64_t seed_;
  std::vector<int> ids_;
};

}  // namespace liuli::lab
