#include "generate/drafter.h"

#include <algorithm>

#include "generate/draft_length.h"

namespace liuli {
namespace {

// An end of one token occurs everywhere and says little; longer than nine there is nothing more to learn.
constexpr size_t kShortest = 2, kLongest = kShortest + DraftLength::kTrusts - 1;
// The draft model reads what it has not seen as a prompt from so many tokens on.
constexpr size_t kReadAsPrompt = 16;

// How many tokens before `end` are the same as at the end of the text, up to kLongest.
size_t match_length(std::span<const int> text, size_t end) {
  size_t n = 0;
  while (n < kLongest && n < end && text[end - 1 - n] == text[text.size() - 1 - n]) n++;
  return n;
}

}  // namespace

int LookupDrafter::look(std::span<const int> history) {
  size_t longest = 0;
  for (size_t end = history.size() - 1; end >= kShortest && longest < kLongest; end--) {
    const size_t n = match_length(history, end);
    if (n > longest) longest = n, next_ = end;
  }
  return longest < kShortest ? -1 : static_cast<int>(longest - kShortest);
}

std::span<const int> LookupDrafter::propose(std::span<const int> history, int n, const Sampler&) {
  guesses_.clear();
  for (size_t i = next_; guesses_.size() < static_cast<size_t>(n); i++)  // a loop in the text goes on as one
    guesses_.push_back(i < history.size() ? history[i] : guesses_[i - history.size()]);
  return guesses_;
}

ModelDrafter::ModelDrafter(Sequence& sequence, Runner& runner, const SamplingSettings& sampling,
                           int vocab_size, int64_t max_context)
    : sequence_(sequence),
      runner_(runner),
      sampler_(sampling),
      vocab_size_(vocab_size),
      max_context_(max_context) {}

int ModelDrafter::look(std::span<const int> history) {
  return static_cast<int64_t>(history.size()) < max_context_ ? 0 : -1;
}

std::span<const int> ModelDrafter::propose(std::span<const int> history, int n, const Sampler& sampler) {
  const auto room = static_cast<int>(max_context_ - static_cast<int64_t>(history.size()));
  n = std::min(n, room);
  text_.assign(history.begin(), history.end());
  sampler_.follow(sampler);
  for (int i = 0; i < n; i++) {
    const auto next = i == 0 ? unseen(history) : std::span<const int>(&text_.back(), 1);
    const Rows logits = sequence_.feed_generated(runner_, next);
    const auto usable = static_cast<size_t>(std::min<int64_t>(logits.width, vocab_size_));
    text_.push_back(sampler_.sample({logits.row(0), usable}, text_));
  }
  return std::span<const int>(text_).subspan(history.size());
}

// Forgets guesses that were wrong; what was drawn since is left to read, at least the last token, for its logits.
std::span<const int> ModelDrafter::unseen(std::span<const int> history) {
  const auto& seen = sequence_.tokens();
  const auto known = static_cast<ptrdiff_t>(std::min(seen.size(), history.size() - 1));
  const auto same = std::mismatch(seen.begin(), seen.begin() + known, history.begin()).first - seen.begin();
  sequence_.truncate(static_cast<int>(same));
  return history.subspan(static_cast<size_t>(same));
}

void ModelDrafter::prepare(std::span<const int> history) {
  const auto rest = unseen(history);
  if (rest.size() >= kReadAsPrompt) sequence_.feed(runner_, rest.first(rest.size() - 1));
}

}  // namespace liuli
