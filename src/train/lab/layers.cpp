// Claim 6: early blocks do grammar, middle ones meaning, late ones the task. Looked at in a real model with the logit lens
// (what would it say if it stopped here?) and by leaving one block out.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "train/lab/experiments.h"

namespace liuli::lab {
namespace {

// Two beginnings that differ in one thing, and what follows the first and the second.
struct Pair {
  const char *first, *second, *answer, *other;
};
constexpr Pair kGrammar[] = {{"The dogs in the garden", "The dog in the garden", " are", " is"},
                             {"The keys that I found", "The key that I found", " were", " was"},
                             {"These apples", "This apple", " are", " is"},
                             {"My brothers", "My brother", " have", " has"},
                             {"They told me that they", "He told me that he", " were", " was"},
                             {"The children next door", "The child next door", " are", " is"},
                             {"He has already", "He will already", " been", " be"},
                             {"Some of the houses", "One of the houses", " are", " is"},
                             {"We", "She", " have", " has"},
                             {"Those trees in the park", "That tree in the park", " are", " is"}};
constexpr Pair kMeaning[] = {
    {"The capital of France is", "The capital of Japan is", " Paris", " Tokyo"},
    {"The capital of Italy is", "The capital of England is", " Rome", " London"},
    {"The opposite of hot is", "The opposite of good is", " cold", " bad"},
    {"A baby cat is called a", "A baby dog is called a", " kitten", " puppy"},
    {"The sun rises in the", "The sun sets in the", " east", " west"},
    {"The color of fresh snow is", "The color of fresh grass is", " white", " green"},
    {"The language spoken in Germany is", "The language spoken in Spain is", " German", " Spanish"},
    {"The opposite of big is", "The opposite of up is", " small", " down"},
    {"The mother of a calf is a", "The mother of a lamb is a", " cow", " sheep"},
    {"Fish live in the", "Birds fly in the", " water", " sky"}};
constexpr const char* kText =
    "The river runs through the old town. In the evening the lamps along its banks are lit one after "
    "another, and the people who live there come out to walk, to talk about the weather and to watch the "
    "boats return from the sea.";

std::vector<float> last_row(const TracedTensor& t) {
  const auto d = static_cast<ptrdiff_t>(t.shape.back());
  return {t.values.end() - d, t.values.end()};
}

// What the lens gives `answer` over `other`, block by block.
std::vector<double> leads(RealModel& model, const char* prompt, int answer, int other) {
  std::vector<std::vector<float>> rows;
  for (const TracedTensor& t : model.trace(model.tokenize(prompt), {"blocks.*.resid_post"}))
    rows.push_back(last_row(t));
  std::vector<double> lead;
  for (const auto& logits : model.lens(rows))
    lead.push_back(static_cast<double>(logits[static_cast<size_t>(answer)]) -
                   static_cast<double>(logits[static_cast<size_t>(other)]));
  return lead;
}

// From which block on the two beginnings are told apart by more than half of what they are in the end; NaN if the model
// does not tell them apart. A difference of two prompts: what the lens likes anyway cancels.
double settled_at(RealModel& model, const Pair& pair) {
  const int answer = model.tokenize(pair.answer).back(), other = model.tokenize(pair.other).back();
  std::vector<double> apart = leads(model, pair.first, answer, other);
  const std::vector<double> second = leads(model, pair.second, answer, other);
  for (size_t block = 0; block < apart.size(); block++) apart[block] -= second[block];
  if (apart.back() <= 0) return NAN;
  size_t from = apart.size() - 1;
  while (from > 0 && apart[from - 1] > apart.back() / 2) from--;
  return static_cast<double>(from);
}

struct Settled {
  double median = NAN;
  std::vector<double> blocks;
  size_t told_apart = 0;
};

Settled settle(Bench& bench, std::span<const Pair> pairs) {
  Settled s;
  const auto last = static_cast<double>(bench.model->config().n_layers - 1);
  std::vector<double> known;
  for (const Pair& pair : pairs) {
    const double at = settled_at(*bench.model, pair);
    s.blocks.push_back(bench.mutated() ? last - at : at);
    if (!std::isnan(at)) known.push_back(s.blocks.back());
  }
  s.told_apart = known.size();
  if (known.empty()) return s;
  std::sort(known.begin(), known.end());
  s.median = (known[(known.size() - 1) / 2] + known[known.size() / 2]) / 2;
  return s;
}

// Per block: how often its lens already says what the model will say, and how far it is from it.
struct Lens {
  std::vector<double> same_top, kl;
};

double log_sum_exp(const std::vector<float>& row) {
  const float top = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x - top));
  return static_cast<double>(top) + std::log(sum);
}

double divergence(const std::vector<float>& p, const std::vector<float>& q) {
  const double zp = log_sum_exp(p), zq = log_sum_exp(q);
  double kl = 0;
  for (size_t i = 0; i < p.size(); i++) {
    const double lp = static_cast<double>(p[i]) - zp;
    kl += std::exp(lp) * (lp - (static_cast<double>(q[i]) - zq));
  }
  return kl;
}

Lens lens_of(RealModel& model, const std::vector<int>& ids, size_t every) {
  const auto streams = model.trace(ids, {"blocks.*.resid_post"});
  Lens lens;
  lens.same_top.assign(streams.size(), 0);
  lens.kl = lens.same_top;
  double n = 0;
  for (size_t token = every; token < ids.size(); token += every, n++) {
    std::vector<std::vector<float>> rows;
    for (const TracedTensor& t : streams) {
      const auto d = static_cast<ptrdiff_t>(t.shape.back());
      rows.emplace_back(t.values.begin() + static_cast<ptrdiff_t>(token) * d,
                        t.values.begin() + static_cast<ptrdiff_t>(token + 1) * d);
    }
    const auto logits = model.lens(rows);
    const auto top = [](const std::vector<float>& row) {
      return std::max_element(row.begin(), row.end()) - row.begin();
    };
    for (size_t block = 0; block < logits.size(); block++) {
      lens.same_top[block] += top(logits[block]) == top(logits.back());
      lens.kl[block] += divergence(logits.back(), logits[block]);
    }
  }
  for (size_t block = 0; block < streams.size(); block++) {
    lens.same_top[block] /= n;
    lens.kl[block] /= n;
  }
  return lens;
}

double loss_of(RealModel& model, const std::vector<int>& ids, const std::vector<Hook>& hooks) {
  double sum = 0;
  const size_t n = ids.size() - 1;
  model.logits(ids, hooks, [&](int position, std::span<const float> row) {
    if (static_cast<size_t>(position) < n)
      sum += log_sum_exp({row.begin(), row.end()}) -
             static_cast<double>(row[static_cast<size_t>(ids[static_cast<size_t>(position) + 1])]);
  });
  return sum / static_cast<double>(n);
}

// Loss added by leaving each block out: both of its branches add nothing.
std::vector<double> ablate(Bench& bench, const std::vector<int>& ids, double whole) {
  std::vector<double> added;
  const auto n = bench.model->config().n_layers;
  for (int64_t block = 0; block < n; block++) {
    bench.progress("ablation", static_cast<double>(block) / static_cast<double>(n));
    const Hook nothing{{fmt::format("blocks.{}.attn_out", block), fmt::format("blocks.{}.mlp_out", block)},
                       [](const HookValue& v) {
                         for (int64_t i = 0; i < v.shape[0]; i++)
                           for (int64_t j = 0; j < v.shape[1]; j++) v.at({i, j}) = 0;
                       }};
    added.push_back(loss_of(*bench.model, ids, {nothing}) - whole);
  }
  return added;
}

LabTable block_table(const Lens& lens, const std::vector<double>& added) {
  LabTable table{{"每一块", "Block by block"},
                 {{"块", "block"},
                  {"镜头已说出最终答案", "lens already has the final answer"},
                  {"与最终分布的 KL", "KL from the final distribution"},
                  {"去掉它,损失增加", "loss added without it"}},
                 {}};
  for (size_t block = 0; block < added.size(); block++)
    table.rows.push_back({fmt::format("{}", block), number(100 * lens.same_top[block], 3) + " %",
                          number(lens.kl[block], 3), number(added[block], 3)});
  return table;
}

void add_pairs(LabTable& table, const BilingualText& kind, std::span<const Pair> pairs,
               const Settled& settled) {
  for (size_t i = 0; i < pairs.size(); i++)
    table.rows.push_back({kind, fmt::format("{} →{}", pairs[i].first, pairs[i].answer),
                          fmt::format("{} →{}", pairs[i].second, pairs[i].other), number(settled.blocks[i])});
}

LabTable pair_table(const Settled& grammar, const Settled& meaning) {
  LabTable table{{"两个开头从哪一块起分得开", "From which block on two beginnings are told apart"},
                 {{"类别", "kind"}, {"一", "one"}, {"另一", "the other"}, {"块", "block"}},
                 {}};
  add_pairs(table, {"语法", "grammar"}, kGrammar, grammar);
  add_pairs(table, {"意思", "meaning"}, kMeaning, meaning);
  return table;
}

}  // namespace

void layers(Bench& bench, LabReport& report) {
  report.title = {"各层的分工", "What the blocks do"};
  report.question = {"早、中、晚的块各做什么?", "What do early, middle and late blocks do?"};
  report.claim = {"前面的块管语法,中间的块管意思,后面的块管任务。",
                  "Early blocks do grammar, middle ones meaning, late ones the task."};
  if (bench.model == nullptr) {
    report.because = {"这个实验要看一个学过语言的真实模型,这次没有给出。",
                      "This experiment looks at a real model that has learned a language; none was given."};
    report.notes.push_back(left_out("整个实验", "the whole experiment"));
    return;
  }
  RealModel& model = *bench.model;
  const Settled grammar = settle(bench, kGrammar), meaning = settle(bench, kMeaning);
  const std::vector<int> ids = model.tokenize(kText);
  const Lens lens = lens_of(model, ids, bench.quick() ? 8 : 3);
  const double whole = loss_of(model, ids, {});
  const std::vector<double> added = ablate(bench, ids, whole);
  const auto n = static_cast<double>(added.size());
  size_t half = 0;  // the first block whose lens has the final answer for half of the tokens
  while (half + 1 < lens.same_top.size() && lens.same_top[half] < 0.5) half++;
  const double late = bench.mutated() ? n - 1 - static_cast<double>(half) : static_cast<double>(half);
  report.tables = {pair_table(grammar, meaning), block_table(lens, added)};
  report.plots = {{{"镜头:与最终分布的 KL", "Lens: KL from the final distribution"},
                   {"块", "block"},
                   {"KL"},
                   false,
                   false,
                   {{{"KL"}, counting(lens.kl.size()), lens.kl}}},
                  {{"去掉一块,损失增加多少", "Loss added by leaving a block out"},
                   {"块", "block"},
                   {"纳特", "nats"},
                   false,
                   true,
                   {{{"增加", "added"}, counting(added.size()), added}}}};
  report.checks = {
      essential_check({"最终答案有一半说得出的块 / 总块数",
                       "block by which half of the final answers are there, of all blocks"},
                      late / n, true, 0.6),
      side_check({"意思定下来比语法晚多少块(中位数)",
                  "blocks by which meaning is settled later than grammar (median)"},
                 meaning.median - grammar.median, true, 1),
      side_check({"只去掉一块,损失最多增加的倍数", "largest relative loss added by leaving one block out"},
                 *std::max_element(added.begin(), added.end()) / whole, true, 0.1)};
  const auto most = static_cast<size_t>(std::max_element(added.begin(), added.end()) - added.begin());
  report.because = {
      fmt::format(
          "语法(中位数)在第 {} 块分开({}/{} 对),意思在第 {} 块({}/{} 对),最终答案的一半要到第 {} 块(共 "
          "{})。去掉第 {} 块损失最大:+{}。",
          number(grammar.median, 3), grammar.told_apart, std::size(kGrammar), number(meaning.median, 3),
          meaning.told_apart, std::size(kMeaning), number(late), n, most, number(added[most], 3)),
      fmt::format(
          "Grammar is settled in block {} (median; {} of {} pairs told apart), meaning in {} ({} of {}), and "
          "half of the final answers only in block {} of {}. Leaving block {} out costs most: +{}.",
          number(grammar.median, 3), grammar.told_apart, std::size(kGrammar), number(meaning.median, 3),
          meaning.told_apart, std::size(kMeaning), number(late), n, most, number(added[most], 3))};
  report.notes.push_back(
      {"这是一种倾向,不是分界:各块都做一点各种事;句子不多,镜头也只看得懂已经朝着输出的内容。",
       "A tendency, not a border: every block does a little of everything; the sentences are few, and the "
       "lens reads only what already points at the output."});
}

}  // namespace liuli::lab
