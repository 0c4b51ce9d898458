#include "train/dataset.h"

#include <algorithm>

#include "core/rng.h"

namespace liuli {
namespace {

// Streams of random numbers, apart from those of weights and dropout.
constexpr uint64_t kSplitStream = 0x51, kWindowStream = 0x52;

Example window(const TokenStream& stream, int64_t begin, int64_t length) {
  Example e;
  e.input = stream.read(begin, length);
  e.target = stream.read(begin + 1, length);
  return e;
}

}  // namespace

void DatasetBuilder::add(const std::vector<int>& document) {
  Rng rng(seed_, (kSplitStream << 48) + static_cast<uint64_t>(documents_++));
  std::vector<int>& to = rng.uniform() < held_out_ ? kept_back_ : train_;
  to.insert(to.end(), document.begin(), document.end());
}

Dataset DatasetBuilder::build() && {
  if (documents_ > 1) return {TokenStream(std::move(train_)), TokenStream(std::move(kept_back_))};
  train_.insert(train_.end(), kept_back_.begin(), kept_back_.end());
  return split_stream(TokenStream(std::move(train_)), held_out_);
}

Dataset split_stream(const TokenStream& stream, double held_out) {
  const auto n = static_cast<int64_t>(held_out * static_cast<double>(stream.size()));
  return {stream.part(0, stream.size() - n), stream.part(stream.size() - n, n)};
}

std::vector<Example> draw_windows(const TokenStream& stream, WindowShape shape, uint64_t seed, int64_t step) {
  Rng rng(seed, (kWindowStream << 48) + static_cast<uint64_t>(step));
  std::vector<Example> batch;
  for (int64_t i = 0; i < shape.batch; i++)
    batch.push_back(
        window(stream, static_cast<int64_t>(rng.below(static_cast<uint64_t>(stream.size() - shape.length))),
               shape.length));
  return batch;
}

std::vector<Example> even_windows(const TokenStream& stream, int64_t length, int64_t most) {
  const int64_t there = std::max<int64_t>(0, (stream.size() - 1) / length), n = std::min(there, most);
  std::vector<Example> windows;
  for (int64_t i = 0; i < n; i++) windows.push_back(window(stream, there * i / n * length, length));
  if (there == 0 && stream.size() > 1) windows.push_back(window(stream, 0, stream.size() - 1));
  return windows;
}

}  // namespace liuli
