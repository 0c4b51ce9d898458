// One number's calculation while it is put together from the values of a run.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "liuli/number_explanation.h"
#include "model/transformer.h"
#include "ops/product_operands.h"
#include "trace/number_place.h"
#include "trace/run_rows.h"

namespace liuli {

/// The run that numbers are explained of.
struct ExplainedRun {
  const Model& model;
  OpContext& ops;  ///< of the run's class
  RunRows& rows;
  std::span<const int> tokens, source, token_types;

  const ModelConfig& config() const { return model.config; }
  const Block& block(const Place& place) const;
  const LayerPlan& plan(const Place& place) const;
};

/// "blocks.3.", "encoder.blocks.3.": the beginning of a block's weights' names.
std::string block_prefix(const Place& place);

/// The vector that a product multiplies: its values, and what each of them is called.
struct ProductInput {
  std::vector<float> values;
  std::function<NumberOperand(int64_t)> operand;
};

/// A matrix by its public name.
struct NamedMatrix {
  std::string name;  ///< "blocks.3.attn.q": ".weight" and ".bias" follow
  const Matrix* weight;
  const float* bias = nullptr;
};

class Calculation {
 public:
  Calculation(ExplainedRun& run, const NumberPlace& at, size_t max_terms);

  const Place& place() const { return at_.place; }
  int64_t index(size_t i) const { return at_.index[i]; }
  ExplainedRun& run() { return run_; }
  const ModelConfig& config() const { return run_.config(); }
  const Block& block() const { return run_.block(at_.place); }
  const LayerPlan& plan() const { return run_.plan(at_.place); }
  /// Another point of the same block.
  Place beside(Point point) const { return {point, at_.place.layer, at_.place.stack, at_.place.expert}; }

  // ---- operands ----
  double value(const Place& place, const std::vector<int64_t>& index) {
    return static_cast<double>(run_.rows.value(place, index));
  }
  NumberOperand operand(const Place& place, const std::vector<int64_t>& index);
  /// A weight, a constant or an intermediate result that is no point.
  static NumberOperand named(std::string name, double value) {
    return {std::move(name), value, value, false, {}};
  }
  /// One token's row of a point, its dimensions in the order they lie in.
  ProductInput input(const Place& place, int64_t token);

  // ---- terms ----
  void add_term(std::vector<NumberOperand> operands, double value);
  void add_term(const Place& place, const std::vector<int64_t>& index) {
    const NumberOperand x = operand(place, index);
    add_term({x}, x.value);
  }
  /// operands[…] · matrix[row][column]: what the file has of that weight is looked up if the term turns out to be a large
  /// one.
  struct WeightOf {
    const NamedMatrix& matrix;
    int64_t row, column;
    double decoded, used;
  };
  void add_weight_term(std::vector<NumberOperand> operands, const WeightOf& weight, double value);
  /// Σ x_i · w_i, times `factor`, in the class of `ops`.
  void add_products(const OpContext& ops, const NamedMatrix& m, int64_t row, const ProductInput& x,
                    double factor = 1);
  /// The same with the bias as the step that follows; `kind` and the result are set.
  void linear(const OpContext& ops, const NamedMatrix& m, int64_t row, const ProductInput& x);
  void linear(const NamedMatrix& m, int64_t row, const ProductInput& x) { linear(run_.ops, m, row, x); }

  // ---- result ----
  double sum() const;
  double absolute_sum() const;
  void set_kind(const char* kind) { result_.kind = kind; }
  void set_formula(std::string formula) { result_.formula = std::move(formula); }
  void step(std::string formula, double value) { result_.steps.push_back({std::move(formula), value}); }
  /// The recomputed number and the magnitude its difference is measured with.
  void finish(double recomputed, double magnitude);
  /// The sum of the terms is the result.
  void finish_sum(const char* kind) { set_kind(kind), finish(sum(), absolute_sum()); }
  double recomputed() const { return result_.recomputed; }
  double magnitude() const { return result_.magnitude; }

  /// The explanation, terms sorted unless they are candidates of a choice.
  NumberExplanation take();

 private:
  struct Stored {
    const Matrix* matrix = nullptr;
    int64_t row = 0, column = 0;
  };

  ExplainedRun& run_;
  const NumberPlace& at_;
  size_t max_terms_;
  NumberExplanation result_;
  std::vector<Stored> weights_;  ///< of each term
};

}  // namespace liuli
