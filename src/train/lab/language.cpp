#include "train/lab/language.h"

#include <algorithm>
#include <cmath>

#include "core/rng.h"

namespace liuli::lab {
namespace {

constexpr int kSpace = 26, kStop = 27;
constexpr uint64_t kTextStream = 11, kBatchStream = 12;

constexpr const char* kNouns[] = {"fox",  "bird", "river", "moon",  "cloud",
                                  "monk", "boat", "tree",  "child", "lamp"};
constexpr const char* kColours[] = {"red", "old", "white", "small", "quiet", "green"};
constexpr const char* kVerbs[] = {"see", "hear", "follow", "love", "find", "wait for"};
constexpr const char* kAlone[] = {"sing", "sleep", "rest", "fall", "return"};
constexpr const char* kNumbers[] = {"two", "three", "seven", "ten"};

// Li Bai, "Quiet Night Thought"; Wang Zhihuan, "On Stork Tower"; Meng Haoran, "Spring Dawn".
constexpr const char* kVerses[] = {
    "chuang qian ming yue guang. yi shi di shang shuang. ju tou wang ming yue. di tou si gu xiang. ",
    "bai ri yi shan jin. huang he ru hai liu. yu qiong qian li mu. geng shang yi ceng lou. ",
    "chun mian bu jue xiao. chu chu wen ti niao. ye lai feng yu sheng. hua luo zhi duo shao. "};

template <size_t n>
const char* pick(const char* const (&words)[n], Rng& rng) {
  return words[rng.below(n)];
}

// "the fox sees" but "two foxs see": number is agreed on, so the verb must remember its subject.
std::string sentence(Rng& rng) {
  const bool plural = rng.below(2) == 0;
  const std::string noun = pick(kNouns, rng);
  std::string s = plural ? std::string(pick(kNumbers, rng)).append(" ") : "the ";
  if (rng.below(2) == 0) s.append(pick(kColours, rng)).append(" ");
  s.append(noun).append(plural ? "s " : " ");
  std::string verb = rng.below(3) == 0 ? pick(kAlone, rng) : pick(kVerbs, rng);
  const bool alone =
      verb == "sing" || verb == "sleep" || verb == "rest" || verb == "fall" || verb == "return";
  if (!plural) verb.insert(std::min(verb.find(' '), verb.size()), 1, 's');
  s.append(verb);
  if (!alone) s.append(" the ").append(pick(kNouns, rng));
  s.append(". ");
  if (rng.below(4) == 0)
    s.append("oh ").append(noun).append(" ").append(noun).append(". ");  // what was named before
  return s;
}

int id_of(char c) {
  if (c == ' ') return kSpace;
  return c == '.' ? kStop : c - 'a';
}

}  // namespace

Language28::Language28(uint64_t seed, int64_t characters) : seed_(seed) {
  Rng rng(seed, kTextStream);
  while (static_cast<int64_t>(ids_.size()) < characters) {
    const std::string next = rng.below(40) == 0 ? pick(kVerses, rng) : sentence(rng);
    for (const char c : next) ids_.push_back(id_of(c));
  }
  ids_.resize(static_cast<size_t>(characters));
}

Example Language28::window(int64_t at, int64_t length) const {
  const auto from = ids_.begin() + at;
  return {{from, from + length}, {from + 1, from + length + 1}, {}, {}};
}

std::vector<Example> Language28::batch(int64_t step, int64_t batch, int64_t length) const {
  Rng rng(seed_, (static_cast<uint64_t>(step) << 8) + kBatchStream);
  const auto n = static_cast<uint64_t>(ids_.size()) * 9 / 10 - static_cast<uint64_t>(length);
  std::vector<Example> examples;
  for (int64_t i = 0; i < batch; i++) examples.push_back(window(static_cast<int64_t>(rng.below(n)), length));
  return examples;
}

std::vector<Example> Language28::held_out(int64_t count, int64_t length) const {
  const auto first = static_cast<int64_t>(ids_.size()) * 9 / 10;
  const int64_t room = static_cast<int64_t>(ids_.size()) - first - length - 1;
  std::vector<Example> examples;
  for (int64_t i = 0; i < count; i++) examples.push_back(window(first + room * i / count, length));
  return examples;
}

double Language28::unigram_entropy() const {
  std::vector<double> count(kVocabulary);
  for (const int id : ids_) count[static_cast<size_t>(id)]++;
  const auto n = static_cast<double>(ids_.size());
  double entropy = 0;
  for (const double c : count)
    if (c > 0) entropy -= c / n * std::log(c / n);
  return entropy;
}

double Language28::bigram_entropy() const {
  std::vector<double> first(kVocabulary), pair(kVocabulary * kVocabulary);
  for (size_t i = 0; i + 1 < ids_.size(); i++) {
    first[static_cast<size_t>(ids_[i])]++;
    pair[static_cast<size_t>(ids_[i] * kVocabulary + ids_[i + 1])]++;
  }
  const auto n = static_cast<double>(ids_.size() - 1);
  double entropy = 0;
  for (size_t i = 0; i < pair.size(); i++)
    if (pair[i] > 0) entropy -= pair[i] / n * std::log(pair[i] / first[i / kVocabulary]);
  return entropy;
}

std::string Language28::text(const std::vector<int>& ids) {
  std::string text;
  for (const int id : ids) text += id == kSpace ? ' ' : id == kStop ? '.' : static_cast<char>('a' + id);
  return text;
}

}  // namespace liuli::lab
