// Worked hand calculations: a norm, one row of attention scores, a residual addition, with every operand
// printed. Plain numbers in, text and numbers out; everything is computed in double from the operands given,
// without the engine's own operations, so an explanation is also an independent check of what the engine
// computed.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "liuli/norm_kind.h"
#include "liuli/number_explanation.h"

namespace liuli {

/// The language of names, notes and tables. Formulas, trace names and JSON keys are the same in both.
enum class Language { zh, en };

/// What the locale variables ask for: the first non-empty one decides, zh if it starts with "zh", else en.
/// A null pointer is an unset variable.
Language language_from_locale(const char* lc_all, const char* lc_messages, const char* lang);
/// The same for this process's LC_ALL, LC_MESSAGES and LANG.
Language language_from_environment();

/// One step of a calculation: formula → numbers in place → result.
struct WorkedStep {
  std::string id;       ///< machine name, the same in every language: "mean_var"
  std::string name;     ///< "mean μ and variance σ²"
  std::string formula;  ///< "μ = (x₀ + … + x₃) / 4"
  std::string numbers;  ///< the formula with numbers in place, one line per result; ≈ where rounded
  std::vector<std::string> value_names;  ///< one name for all of values, or one name for each of them
  std::vector<double> values;  ///< the results in full precision, all of them (also those not printed)
  bool is_vector = false;      ///< values are one vector (an array in JSON, also when of length 1)
};

/// Numbers side by side. A row without values stands for rows left out.
struct WorkedTable {
  struct Row {
    std::string label;
    std::vector<double> values;  ///< one per column; NaN is an empty cell
    std::string remark;
  };
  std::string id;
  std::string title;
  std::string label_heading;
  std::vector<std::string> columns;  ///< headings in the language of the explanation
  std::vector<std::string> keys;     ///< machine names of the columns
  std::string remark_heading;        ///< empty: no row has a remark
  std::vector<Row> rows;
  int digits = 6;  ///< decimals when printed; a column with a rounded cell is headed by ≈
};

/// A worked calculation.
struct Explanation {
  std::string id;  ///< "norm", "scores", "residual", "explosion", "recovery", "article"
  std::string title;
  std::vector<WorkedStep> steps;
  std::vector<WorkedTable> tables;
  std::string plot;  ///< lines of text for a terminal, or empty
  std::string svg;   ///< the same picture as an SVG document, or empty
  std::vector<std::string> notes;
  std::vector<Explanation> parts;  ///< shown after everything above

  /// The step with this id, or null.
  const WorkedStep* step(std::string_view step_id) const;
  /// The table with this id, or null.
  const WorkedTable* table(std::string_view table_id) const;
};

constexpr int kExplainDigits = 6;  ///< default number of decimals

/// One norm to work out. For NormKind::batch, row is one column (the same dimension of every sample) and
/// gamma and beta have one element.
struct NormInputs {
  NormKind kind = NormKind::layer;
  std::vector<double> row;
  std::vector<double> gamma;  ///< as long as the row; empty: 1 everywhere
  std::vector<double> beta;   ///< as long as the row; empty: 0 everywhere; must be empty for rms
  double eps = 0;
  std::optional<double> mean;       ///< batch only: the stored statistics; both or neither
  std::optional<double> variance;   ///< (neither: computed from the column, as in training)
  std::optional<int> round_steps;   ///< keep only so many decimals of every intermediate result, as on paper
  std::vector<std::string> labels;  ///< names of the dimensions; empty: their numbers
  std::string subject;              ///< for the title: "blocks.0.ln1, 西安"
  std::string model;                ///< for the note on which norm the model uses: "SmolLM2"; may be empty
  std::vector<double> observed;     ///< the outputs a run recorded, compared in a note; may be empty
};

/// Works a norm out in four steps and adds a table of γ's scaling and β's shift per dimension; says which
/// norm it is and what that norm lacks.
///   layer: μ, σ² → σ = √(σ² + ε) → x̂ = (x − μ) / σ → y = γ ⊙ x̂ + β
///   rms:   m = mean(x²) → rms = √(m + ε) → x̂ = x / rms → y = γ ⊙ x̂
/// Steps (values): mean_var (mean, var) or mean_square; sigma; normalized; out.
/// Rows longer than 8 print their first and largest terms; the values are always complete.
/// Errors: invalid_argument for lengths that disagree, an empty row, a negative ε, numbers that are not
/// finite, a σ of 0, a β for rms.
Explanation explain_norm(const NormInputs& inputs, Language language, int digits = kExplainDigits);

/// One query against n keys of one head.
struct ScoreInputs {
  std::vector<double> q;                  ///< [head_dim], after RoPE
  std::vector<std::vector<double>> keys;  ///< [n][head_dim], after RoPE; key j has position j
  std::optional<double> scale;            ///< default 1 / √head_dim
  double soft_cap = 0;                    ///< c > 0: s ← c · tanh(s / c)
  std::optional<int64_t>
      query_position;               ///< causal mask: keys after it are hidden; unset: every key is visible
  int64_t window = 0;               ///< > 0: only this many positions, the query's own included, are visible
  std::vector<bool> visible;        ///< [n], when not empty, instead of query_position and window
  std::optional<int64_t> focus;     ///< the key whose dot product is printed; default the most attended
  std::vector<std::string> labels;  ///< the keys' tokens; empty: their numbers
  std::string subject;
  std::vector<double> observed;  ///< the pattern a run recorded
};

/// Works one row of attention out: q·k with its largest products and partial sums, × scale, soft cap, mask,
/// softmax. Steps: scores_raw, scores, attn_scores (−inf where masked), max, exp, sum, pattern. Errors:
/// invalid_argument for lengths that disagree, no key, no visible key, positions out of range, numbers that
/// are not finite, a negative cap or window.
Explanation explain_scores(const ScoreInputs& inputs, Language language, int digits = kExplainDigits);

/// One addition to the residual stream.
struct ResidualInputs {
  std::vector<double> x;
  std::vector<double> added;
  std::string x_name = "x";
  std::string added_name = "a";
  std::string sum_name = "y";
  std::vector<std::string> labels;  ///< names of the dimensions; empty: their numbers
  std::string subject;
  std::vector<double> observed;  ///< the sums a run recorded
};

/// Works y = x + a out, with the L2 norms of the three and the cosine between x and a.
/// Steps: sum; norms (x, added, sum); cosine (absent when one of the two is all zeros).
/// Errors: invalid_argument for lengths that disagree, empty rows, numbers that are not finite.
Explanation explain_residual(const ResidualInputs& inputs, Language language, int digits = kExplainDigits);

/// A lane that each layer multiplies and shifts: x ← factor · x + shift.
struct ExplosionInputs {
  double factor = 1.5;
  double shift = 0.5;
  double start = 1;
  int steps = 10;
};

/// Repeats x ← factor · x + shift, compares with the closed form, plots it, and finds the step at which f16,
/// bf16 and f32 overflow by repeating it with every operation rounded to that format's bits. Steps: iterate
/// (steps + 1 values), closed_form. WorkedTable: overflow. Errors: invalid_argument for numbers that are not
/// finite or steps outside 1 … 1000.
Explanation explain_explosion(const ExplosionInputs& inputs, Language language, int digits = kExplainDigits);

/// Outputs of one LayerNorm, printed with a known number of decimals, whose inputs are not known.
struct RecoveryInputs {
  std::vector<std::vector<double>> rows;  ///< [n][d]
  std::vector<double> gamma;              ///< [d], no zeros
  std::vector<double> beta;               ///< [d]
  int decimals = 3;                       ///< of the printed outputs
  std::vector<std::string> labels;        ///< names of the rows; empty: their numbers
};

/// Undoes γ and β, x̂ = (y − β) / γ, and tests that each row of x̂ has mean 0 and variance 1 as far as the
/// rounding of the printed digits allows. μ and σ themselves cannot be recovered: the norm removed them.
/// Steps: normalized.r per row r; mean, var (one value per row). WorkedTable: rows, with the bounds of the
/// rounding. Errors: invalid_argument for lengths that disagree, numbers that are not finite, a γ of 0.
Explanation explain_recovery(const RecoveryInputs& inputs, Language language, int digits = kExplainDigits);

/// The worked example of the article the project starts from, through the functions above: the explosion ×1.5
/// + 0.5, the row of 西安 (ε = 0, ε = 1e-5, with paper rounding, and by RMSNorm) compared with the printed
/// numbers, and what can be recovered of the six printed rows. Parts: explosion, layer_norm, layer_norm_eps,
/// paper, rows, rms_norm.
Explanation explain_article(Language language, int digits = kExplainDigits);

struct TextStyle {
  int width = 100;      ///< columns of the terminal; at least 40 are used; CJK characters count two
  bool colour = false;  ///< ANSI colours
};

/// The explanation as lines for a terminal, ending with a newline. Tables and plots are not wrapped.
std::string render_text(const Explanation& explanation, const TextStyle& style = {});
/// One number of a run with its `max_terms` largest terms (0: all), partial sums, roundings, stored bits and both
/// comparisons. Lines are not wrapped: names stay whole, so that they can be copied.
std::string render_text(const NumberExplanation& explanation, Language language, size_t max_terms = 8,
                        const TextStyle& style = {});
/// The machine form; infinities become the strings "inf" and "-inf", an empty cell null.
void to_json(nlohmann::json& json, const Explanation& explanation);
/// The machine form as indented text.
std::string render_json(const Explanation& explanation);

}  // namespace liuli
