// Guesses of the tokens to come: from the text itself, or from a smaller model.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "generate/sampler.h"
#include "generate/sequence.h"

namespace liuli {

/// Guesses what follows a text. What it says changes the speed of a generation, never its tokens.
class Drafter {
 public:
  virtual ~Drafter() = default;

  /// How far the guesses behind `history` can be trusted: 0 … DraftLength::kTrusts − 1; −1: there are none.
  virtual int look(std::span<const int> history) = 0;
  /// Reads what it has not seen of the text, where that is much.
  virtual void prepare(std::span<const int>) {}
  /// Up to n tokens that may follow what look() saw last; valid until the next call. `sampler` is the state that will draw
  /// the first of them.
  virtual std::span<const int> propose(std::span<const int> history, int n, const Sampler& sampler) = 0;
  /// The probability that a guess is right, before any was seen.
  virtual double prior() const = 0;
};

/// What followed the longest end of the text that occurred before, at its latest occurrence.
class LookupDrafter : public Drafter {
 public:
  int look(std::span<const int> history) override;
  std::span<const int> propose(std::span<const int> history, int n, const Sampler& sampler) override;
  double prior() const override { return 0.5; }

 private:
  size_t next_ = 0;  ///< where the text went on, last time
  std::vector<int> guesses_;
};

/// What a smaller model draws with the same settings and the same random numbers.
class ModelDrafter : public Drafter {
 public:
  /// sequence: the model's own, kept from one generation to the next; it shares the runner. Guesses are ids below
  /// vocab_size, in texts of up to max_context tokens.
  ModelDrafter(Sequence& sequence, Runner& runner, const SamplingSettings& sampling, int vocab_size,
               int64_t max_context);
  int look(std::span<const int> history) override;
  std::span<const int> propose(std::span<const int> history, int n, const Sampler& sampler) override;
  void prepare(std::span<const int> history) override;
  double prior() const override { return 0.8; }

 private:
  std::span<const int> unseen(std::span<const int> history);

  Sequence& sequence_;
  Runner& runner_;
  Sampler sampler_;
  int vocab_size_;
  int64_t max_context_;
  std::vector<int> text_;  ///< the history, then the guesses
};

}  // namespace liuli
