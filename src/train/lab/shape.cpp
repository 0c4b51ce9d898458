// Claim 4: the matrix keeps its shape from the first block to the last.
#include <map>
#include <set>

#include <fmt/format.h>

#include "train/lab/experiments.h"
#include "train/lab/language.h"
#include "train/lab/stack.h"
#include "train/train_step.h"

namespace liuli::lab {
namespace {

using Shape = std::vector<int64_t>;

std::string text(const Shape& shape) {
  std::string s = "[";
  for (const int64_t n : shape) s += fmt::format("{}{}", s.size() > 1 ? ", " : "", n);
  return s + "]";
}

// Shapes by a point's name without its block's number, and of which blocks.
struct Shapes {
  std::vector<std::string> order;
  std::map<std::string, std::set<Shape>> of;
  std::map<std::string, int> blocks;

  void add(const std::string& name, const Shape& shape) {
    if (of.count(name) == 0) order.push_back(name);
    of[name].insert(shape);
    blocks[name]++;
  }
};

bool is_stream(const std::string& name, bool mutated) {
  if (mutated)
    return name == "resid_pre" || name == "mlp.post";  // what the branch works in, not what passes on
  return name == "resid_pre" || name == "resid_mid" || name == "resid_post" || name == "attn_out" ||
         name == "mlp_out" || name == "normalized_resid_mid" || name == "normalized_resid_post";
}

Shapes real_shapes(RealModel& model) {
  Shapes shapes;
  const std::vector<int> ids = model.tokenize("今天西安的天气很好");
  for (const TracedTensor& t : model.trace(ids, {"*"})) {
    const size_t at = t.name.rfind("blocks.", 0) == 0 ? t.name.find('.', 7) + 1 : std::string::npos;
    if (at != std::string::npos) shapes.add(t.name.substr(at), t.shape);
  }
  return shapes;
}

// Without a real model: a stack of 64, watched wherever it keeps something.
class ShapeWatcher final : public Probe {
 public:
  bool wants(const Place& p) const override { return p.layer >= 0; }
  void see(const ProbedValue& v) override {
    const std::string name = v.place.name();
    shapes.add(name.substr(name.find('.', 7) + 1), {v.rows.n, v.rows.width});
  }
  bool sees_batches() const override { return true; }
  Shapes shapes;
};

Shapes stack_shapes(Bench& bench) {
  StackShape s;
  s.depth = 64;
  s.d_ff = 256;
  s.vocab_size = Language28::kVocabulary;
  RandomStack stack(s, bench.settings.seed);
  TrainStep step(stack.model, bench.runner);
  ShapeWatcher watcher;
  step.watcher = &watcher;
  step.forward(Language28(bench.settings.seed, 2000).batch(0, 1, 12), Keep::nothing);
  return watcher.shapes;
}

struct Found {
  size_t stream_shapes = 0, changing = 0, points = 0;
  Shape first;
};

Found show(const Shapes& shapes, bool mutated, LabTable& table) {
  std::set<Shape> stream;
  Found f;
  for (const std::string& name : shapes.order) {
    const std::set<Shape>& seen = shapes.of.at(name);
    std::string list;
    for (const Shape& s : seen) list += (list.empty() ? "" : "  ") + text(s);
    table.rows.push_back({name, fmt::format("{}", shapes.blocks.at(name)), list});
    f.changing += seen.size() > 1;
    f.points++;
    if (!is_stream(name, mutated)) continue;
    stream.insert(seen.begin(), seen.end());
    f.first = *seen.begin();
  }
  f.stream_shapes = stream.size();
  return f;
}

}  // namespace

void shape(Bench& bench, LabReport& report) {
  report.title = {"形状不变", "The shape stays"};
  report.question = {"矩阵从第一块到最后一块,形状变过吗?",
                     "Does the matrix change its shape between the first block and the last?"};
  report.claim = {"矩阵经过 N 块,形状始终不变。", "The matrix keeps its shape through all N blocks."};
  LabTable table{{"每个点的形状", "Shape of every point"},
                 {{"点", "point"}, {"块数", "blocks"}, {"形状", "shapes seen"}},
                 {}};
  const Found f =
      show(bench.model != nullptr ? real_shapes(*bench.model) : stack_shapes(bench), bench.mutated(), table);
  report.tables.push_back(std::move(table));
  report.checks = {essential_check({"残差流上出现过的形状种数", "number of different shapes on the stream"},
                                   static_cast<double>(f.stream_shapes), false, 1),
                   side_check({"形状随块而变的点数", "points whose shape differs between blocks"},
                              static_cast<double>(f.changing), false, 0)};
  report.because = {
      fmt::format("{} 种点里,残差流只有 {} 种形状{};有 {} "
                  "种点的形状随块变化。块的内部(注意力分数、前馈隐层)形状不同,但出来又变回去。",
                  f.points, f.stream_shapes,
                  f.stream_shapes == 1 ? std::string(" ").append(text(f.first)) : std::string(), f.changing),
      fmt::format("Of {} kinds of points, the stream's have {} shape{}; {} kinds differ between blocks. "
                  "Inside a block (scores, hidden layer) shapes are others, and come back.",
                  f.points, f.stream_shapes,
                  f.stream_shapes == 1 ? std::string(" ").append(text(f.first)) : std::string("s"),
                  f.changing)};
  LabPlot plot{{"每个点的宽度", "Width of every point"},
               {"点(按顺序)", "point (in order)"},
               {"一行的数", "numbers per token"},
               false,
               true,
               {{{"宽度", "width"}, {}, {}}}};
  const LabTable& shown = report.tables.front();
  for (size_t i = 0; i < shown.rows.size(); i++) {
    const std::string& s = shown.rows[i][2].en;
    const size_t comma = s.rfind(' ') == std::string::npos ? 0 : s.rfind(' ') + 1;
    plot.series[0].x.push_back(static_cast<double>(i));
    plot.series[0].y.push_back(std::atof(s.c_str() + (s[comma] == '[' ? comma + 1 : comma)));
  }
  report.plots.push_back(std::move(plot));
  if (bench.model == nullptr)
    report.notes.push_back(
        left_out("真实模型每个点的形状(这里看的是 64 块的随机堆叠)",
                 "the shapes in a real model (a random stack of 64 blocks was looked at)"));
}

}  // namespace liuli::lab
