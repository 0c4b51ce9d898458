// Which tokens a step learns from. Nothing is shuffled or remembered: a step's windows follow from its number.
#pragma once
#include <string>
#include <vector>

#include "train/token_file.h"
#include "train/train_step.h"

namespace liuli {

/// What is learned from, and what is kept back to see whether that helps.
struct Dataset {
  TokenStream train, held_out;
};

/// Documents, each given with the token that ends it, into one run of tokens each for training and for the held-out
/// loss. Document i is held out with probability `held_out`, drawn from (seed, i); of a single document the end is
/// held out.
class DatasetBuilder {
 public:
  DatasetBuilder(double held_out, uint64_t seed) : held_out_(held_out), seed_(seed) {}
  void add(const std::vector<int>& document);
  Dataset build() &&;

 private:
  double held_out_;
  uint64_t seed_;
  int64_t documents_ = 0;
  std::vector<int> train_, kept_back_;
};

/// The last `held_out` of a run of tokens is kept back.
Dataset split_stream(const TokenStream& stream, double held_out);

struct WindowShape {
  int64_t batch = 1, length = 1;
};

/// `batch` windows of `length` tokens beginning anywhere, the targets one further: places from (seed, step).
/// REQUIRES: stream.size() > length (the caller checked).
std::vector<Example> draw_windows(const TokenStream& stream, WindowShape shape, uint64_t seed, int64_t step);

/// At most `most` windows that do not overlap, spread evenly over the stream: the same at every evaluation.
std::vector<Example> even_windows(const TokenStream& stream, int64_t length, int64_t most);

}  // namespace liuli
