#include "trace/explain_texts.h"

#include <cstdlib>
#include <iterator>
#include <string_view>

namespace liuli {
namespace worked {
namespace {

struct Entry {
  Text id;
  const char* zh;
  const char* en;
};

// In the order of the enumeration, which the compiler checks below. The terms are the field's own: 词元
// (token), 层归一化, 均值, 方差, 标准差, 缩放, 平移, 掩码, 残差, 余弦相似度.
constexpr Entry kEntries[] = {
    {Text::subject_suffix, "：{}", ": {}"},
    {Text::uses_model, "{} 用的是", "{} uses"},
    {Text::uses_here, "这里用的是", "This is"},
    {Text::lines_left_out, "…（省略 {0} 项；下面是其余各项中绝对值最大的 {1} 项）",
     "… ({0} left out; next, the {1} largest of the rest)"},
    {Text::observed_equal, "与运行时记录的 {0} 个数完全相同。",
     "Equal to all {0} values recorded in the run."},
    {Text::observed_difference, "与运行时记录的 {0} 个数相比，最大差为 {1}（第 {2} 个）。",
     "Compared with the {0} values recorded in the run, the largest difference is {1} (at {2})."},
    {Text::norm_title_none, "不做归一化{}", "No normalisation{}"},
    {Text::norm_title_layer, "层归一化（LayerNorm）{}", "Layer normalisation (LayerNorm){}"},
    {Text::norm_title_rms, "均方根归一化（RMSNorm）{}", "Root-mean-square normalisation (RMSNorm){}"},
    {Text::norm_title_batch, "批归一化（BatchNorm），一列{}",
     "Batch normalisation (BatchNorm), one column{}"},
    {Text::step_pass_through, "原样通过", "pass through"},
    {Text::step_mean_var, "均值 μ 与方差 σ²", "mean μ and variance σ²"},
    {Text::step_mean_var_batch, "这一列的均值 μ 与方差 σ²", "mean μ and variance σ² of the column"},
    {Text::formula_stored_statistics, "μ、σ²：训练时累计并保存的统计量",
     "μ, σ²: the statistics stored during training"},
    {Text::step_mean_square, "均方 m", "mean square m"},
    {Text::largest_squares, "最大的平方项：{}", "largest squares: {}"},
    {Text::step_sigma, "标准差 σ", "standard deviation σ"},
    {Text::step_rms, "均方根 rms", "root mean square rms"},
    {Text::step_normalize, "归一化：减均值，除以标准差",
     "normalise: subtract the mean, divide by the standard deviation"},
    {Text::step_normalize_rms, "归一化：除以均方根（不减均值）",
     "normalise: divide by the root mean square (no mean is subtracted)"},
    {Text::step_scale_shift, "缩放 γ 与平移 β", "scale by γ, shift by β"},
    {Text::step_scale, "缩放 γ（没有 β）", "scale by γ (there is no β)"},
    {Text::table_dimensions, "每个维度上 γ 的缩放与 β 的平移", "γ's scaling and β's shift, per dimension"},
    {Text::table_dimensions_rms, "每个维度上 γ 的缩放", "γ's scaling, per dimension"},
    {Text::table_samples, "每个样本上 γ 的缩放与 β 的平移", "γ's scaling and β's shift, per sample"},
    {Text::column_dimension, "维度", "dimension"},
    {Text::column_sample, "样本", "sample"},
    {Text::column_effect, "作用", "effect"},
    {Text::effect_stretched, "放大", "stretched"},
    {Text::effect_shrunk, "缩小", "shrunk"},
    {Text::effect_kept, "不变", "kept"},
    {Text::effect_erased, "抹去", "erased"},
    {Text::effect_flipped, "并反号", ", sign flipped"},
    {Text::effect_up, "，上移", ", up"},
    {Text::effect_down, "，下移", ", down"},
    {Text::effect_unshifted, "，不平移", ", no shift"},
    {Text::note_none, "这个位置没有归一化：输入原样通过。",
     "There is no norm in this place: the input passes through."},
    {Text::note_rms,
     "{0} RMSNorm，不是 LayerNorm：不减均值 μ，没有平移 β，只有 {1} 个参数 γ。这一行的均值 {2}，没有用到。",
     "{0} RMSNorm, not LayerNorm: no mean μ is subtracted and there is no shift β, only {1} parameters γ. "
     "(The mean of this row {2}; it is not used.)"},
    {Text::note_layer,
     "{0} LayerNorm：每一行（一个词元）只用自己的 μ 和 σ；γ 与 β 各 {1} 个，共 {2} 个参数。",
     "{0} LayerNorm: each row (one token) is measured by its own μ and σ; γ and β have {1} numbers each, {2} "
     "parameters."},
    {Text::note_batch,
     "{0} BatchNorm：μ 和 σ 来自同一维度上的全部 {1} "
     "个样本，换一批样本，每个结果都会变；逐个词元生成时没有“一批”可言。",
     "{0} BatchNorm: μ and σ come from all {1} samples of one dimension, so another batch changes every "
     "result; generation token by token has no batch."},
    {Text::note_batch_stored,
     "{0} BatchNorm 的推理形式：μ 和 σ² 是训练时保存的统计量，与眼前的 {1} 个样本无关。",
     "{0} BatchNorm as at inference: μ and σ² were stored during training and do not depend on these {1} "
     "samples."},
    {Text::note_batch_gap, "眼前这一列自己的均值 {0}，方差 {1}：与保存的统计量之差，就是训练与推理的落差。",
     "This column's own mean {0}, its variance {1}: their distance from the stored ones is the gap between "
     "training and inference."},
    {Text::check_layer, "检验：x̂ 的均值 {0}，方差 {1}。", "Check: mean of x̂ {0}, variance {1}."},
    {Text::check_rms, "检验：x̂ 的均方 {0}。", "Check: mean square of x̂ {0}."},
    {Text::note_no_gamma, "没有给出 γ：各维都按 1 计算。", "No γ is given: 1 is used everywhere."},
    {Text::note_no_beta, "没有给出 β：各维都按 0 计算。", "No β is given: 0 is used everywhere."},
    {Text::note_rounded_steps, "每一步的结果都先舍入到 {0} 位小数，再参与下一步，如同在纸上计算。",
     "Every result is rounded to {0} decimals before the next step uses it, as on paper."},
    {Text::scores_title, "一行注意力分数{}", "One row of attention scores{}"},
    {Text::step_scores_raw, "点积 q·k（乘积从大到小）", "dot product q·k (largest products first)"},
    {Text::step_scores, "乘以缩放系数", "multiply by the scale"},
    {Text::step_scores_capped, "缩放并软截断", "scale and soft-cap"},
    {Text::step_mask, "掩码", "mask"},
    {Text::mask_none, "没有掩码：所有键都可见", "no mask: every key is visible"},
    {Text::mask_given, "给定的掩码", "the mask that was given"},
    {Text::mask_causal, "因果掩码：j > {0} 的键不可见", "causal mask: keys j > {0} are hidden"},
    {Text::mask_window, "因果掩码加滑动窗口：只有 {0} - {1} < j ≤ {0} 的键可见",
     "causal mask and sliding window: only keys {0} - {1} < j ≤ {0} are visible"},
    {Text::mask_count, "{1} 个键中有 {0} 个被遮住", "{0} of {1} keys are hidden"},
    {Text::step_max, "最大值 M（先减去它，指数才不会溢出）",
     "maximum M (subtracted so that no exponential overflows)"},
    {Text::step_exp, "指数", "exponentials"},
    {Text::step_sum, "求和 Z", "their sum Z"},
    {Text::step_pattern, "注意力权重（概率）", "attention weights (probabilities)"},
    {Text::table_products, "q 与键 {} 的点积：最大的乘积与部分和",
     "q·k for key {}: the largest products and their partial sums"},
    {Text::column_partial_sum, "部分和", "partial sum"},
    {Text::row_others, "其余 {} 项", "{} others"},
    {Text::table_keys, "每个键的分数与概率", "score and probability of each key"},
    {Text::column_key, "键", "key"},
    {Text::column_score, "分数", "score"},
    {Text::column_masked, "掩码后", "masked"},
    {Text::column_probability, "概率", "probability"},
    {Text::column_mask, "掩码", "mask"},
    {Text::remark_masked, "遮住", "hidden"},
    {Text::note_scores, "得到注意力最多的键：{0}，概率 {1}。",
     "The most attended key: {0}, probability {1}."},
    {Text::check_scores, "检验：概率之和 {0}。", "Check: sum of the probabilities {0}."},
    {Text::residual_title, "残差相加{}", "Residual addition{}"},
    {Text::step_residual_sum, "逐维相加", "add, dimension by dimension"},
    {Text::step_norms, "L2 范数", "L2 norms"},
    {Text::step_cosine, "余弦相似度", "cosine similarity"},
    {Text::table_residual, "逐维：原来的数、加上的数、和",
     "per dimension: what was there, what is added, the sum"},
    {Text::note_residual, "{0} 原样留在和里：加法不缩放也不截断它，{1} 只是叠加上去的改动。",
     "{0} stays in the sum as it was: the addition neither scales nor clips it, {1} is only a change put on "
     "top."},
    {Text::note_no_cosine, "{0} 全是 0，没有方向，余弦无定义。",
     "{0} is all zeros and has no direction: the cosine is undefined."},
    {Text::note_ratio, "加上的部分与原来的范数之比 {0}。", "‖added‖ / ‖before‖ {0}."},
    {Text::explosion_title, "x ← {0} × x + {1}，重复 {2} 次", "x ← {0} × x + {1}, {2} times"},
    {Text::step_iterate, "逐次计算", "step by step"},
    {Text::step_closed_form, "通项公式（直接算出最后一项）", "closed form (the last value directly)"},
    {Text::table_overflow, "何时溢出为 ∞", "when it overflows to ∞"},
    {Text::column_format, "格式", "format"},
    {Text::column_largest, "最大有限数", "largest finite number"},
    {Text::column_overflow_step, "溢出于第几次", "overflows at step"},
    {Text::column_last_finite, "最后的有限值", "last finite value"},
    {Text::column_result, "结果", "result"},
    {Text::overflow_found, "溢出", "overflows"},
    {Text::overflow_settles, "停在不动点，不会溢出", "settles at a fixed point, never overflows"},
    {Text::overflow_not_found, "{0} 次之内没有溢出", "no overflow within {0} steps"},
    {Text::note_explosion_growth, "xₙ / x₀ {0}（n = {1}）。", "xₙ / x₀ {0} (n = {1})."},
    {Text::note_overflow_method, "溢出的次数是按各格式的尾数位数逐次舍入算出来的，不是由通项公式推断的。",
     "The overflow steps are found by repeating the rule with every operation rounded to the format's bits, "
     "not from the closed form."},
    {Text::plot_linear, "条长与 |x| 成正比", "bar length proportional to |x|"},
    {Text::plot_logarithmic, "条长与 log₁₀(1 + |x|) 成正比", "bar length proportional to log₁₀(1 + |x|)"},
    {Text::plot_step_axis, "次数", "step"},
    {Text::recovery_title, "从印出的 {} 行输出能还原什么", "What {} printed output rows still tell"},
    {Text::step_recover, "行 {}：撤销 β 与 γ", "row {}: undo β and γ"},
    {Text::step_recovered_means, "还原出的 x̂ 的均值（应为 0）", "mean of the recovered x̂ (should be 0)"},
    {Text::step_recovered_variances, "还原出的 x̂ 的方差（应为 1）",
     "variance of the recovered x̂ (should be 1)"},
    {Text::table_recovery, "均值应为 0、方差应为 1，误差不应超过舍入所允许的界",
     "mean 0 and variance 1, within what rounding allows"},
    {Text::column_row, "行", "row"},
    {Text::column_mean, "均值", "mean"},
    {Text::column_variance, "方差", "variance"},
    {Text::column_bound, "误差界", "bound"},
    {Text::recovery_consistent, "相符", "consistent"},
    {Text::recovery_inconsistent, "不相符", "not consistent"},
    {Text::note_recovery, "归一化抹去了每行原来的 μ 和 σ：从输出只能还原 x̂，不能还原 x。",
     "The norm removed each row's μ and σ: x̂ can be recovered from the outputs, x cannot."},
    {Text::note_recovery_bound,
     "误差界由印出的 {0} 位小数（半个末位单位，除以 |γ|）逐项算出；ε > 0 会使方差比 1 略小。",
     "The bounds follow from the {0} printed decimals (half a unit in the last place, divided by |γ|); an ε "
     "> 0 makes the variance a little less than 1."},
    {Text::article_title, "文章中的算例，用通用的步骤重新计算",
     "The article's worked example, recomputed by the general steps"},
    {Text::article_with_eps, "{}，加上通常的 ε", "{}, with the usual ε"},
    {Text::article_on_paper, "{}，纸上计算", "{}, on paper"},
    {Text::article_by_rms, "{}，同一行改用 RMSNorm", "{}, the same row by RMSNorm"},
    {Text::table_article, "与文章印出的数逐一比较", "compared with the numbers printed in the article"},
    {Text::column_item, "项", "item"},
    {Text::column_computed, "算出", "computed"},
    {Text::column_rounded, "舍入到 {} 位", "to {} decimals"},
    {Text::column_printed, "文章", "article"},
    {Text::column_units, "差（末位单位）", "difference (last place)"},
    {Text::article_same, "一致", "same"},
    {Text::article_differs, "不同", "differs"},
    {Text::note_article_equal, "舍入到 {1} 位小数后，{0} 个数全部与文章一致。",
     "Rounded to {1} decimals, all {0} numbers agree with the article."},
    {Text::note_article_differs, "{1} 个数中有 {0} 个与文章不同。",
     "{0} of {1} numbers differ from the article."},
    {Text::note_article_no_eps, "文章的代码没有 ε；真实模型都有，用来防止除以 0。",
     "The article's code has no ε; real models have one, against a division by 0."},
    {Text::note_article_paper, "可见文章的数是全精度计算、最后才舍入的；若每步都舍入，末位会有出入。",
     "So the article computed in full precision and rounded last; rounding every step changes the last "
     "place."},
    {Text::note_article_rows, "另外 {0} 行的输入 x 以及 μ、σ，文章没有以文字印出，因此这里不猜。",
     "For the other {0} rows the article prints neither the inputs x nor μ and σ as text, so they are not "
     "guessed here."},
    {Text::note_article_models,
     "文章提到的 LLaMA-3、Qwen2.5、DeepSeek-V3 用的都是 RMSNorm；上面用同一行和同一组 γ，β 不参与。",
     "The models the article names (LLaMA-3, Qwen2.5, DeepSeek-V3) use RMSNorm; above, the same row and γ, "
     "without β."},
    {Text::note_explosion_equal, "文章印的是 {0}；算出的是 {1}，舍入到 {2} 位小数后一致。",
     "The article prints {0}; computed: {1}, the same to {2} decimals."},
    {Text::note_explosion_differs, "文章印的是 {0}；算出的是 {1}，舍入到 {2} 位小数后不同。",
     "The article prints {0}; computed: {1}, which differs at {2} decimals."},
    {Text::number_where, "形状 {0}；乘积按 {1} 类计算，指令集 {2}", "shape {0}; {1} class of products, {2}"},
    {Text::number_rounding, "相乘之前的舍入（→）：激活值 {0}，权重 {1}",
     "rounded before they are multiplied (→): activations to {0}, weights to {1}"},
    {Text::number_terms, "共 {0} 项，从大到小；右边是部分和", "{0} terms, largest first, with partial sums"},
    {Text::number_candidates, "{0} 个候选，按优先次序", "{0} candidates in order of preference"},
    {Text::number_others, "其余 {0} 项之和", "the other {0} terms together"},
    {Text::number_sum, "总和", "sum"},
    {Text::number_stored, "{0} {1}：第 {2} 行，第 {3} 块，块内第 {4} 个",
     "{0} {1}: row {2}, block {3}, number {4} of it"},
    {Text::number_bits, "存储的位 {}", "stored bits {}"},
    {Text::number_recomputed, "双精度重算", "recomputed in double"},
    {Text::number_run, "运行所得", "the run had"},
    {Text::number_agrees, "相差 {0}，是量级 {1}（Σ|各项|，商则为商本身）的 {2}：一致（不超过 1e-5）",
     "difference {0}: {2} of the magnitude {1} (Σ|terms|; of a quotient its own): agrees (at most 1e-5)"},
    {Text::number_differs, "相差 {0}，是量级 {1}（Σ|各项|，商则为商本身）的 {2}：超过 1e-5，不一致",
     "difference {0}: {2} of the magnitude {1} (Σ|terms|; of a quotient its own): more than 1e-5, does not "
     "agree"},
    {Text::number_edited, "编辑改过这一处：这次运行用的是改后的数，上面的算式给出未改的数",
     "an edit wrote here: the run went on with the edited number, the calculation above gives it unedited"},
    {Text::number_exact, "全程双精度运行中的同一个数是 {0}，与它相差 {1}",
     "the same number of a run in double is {0}; the run is {1} away from it"},
    {Text::number_next, "每个操作数都可以接着问，例如 --at '{}'", "ask for an operand next: --at '{}'"},
};

constexpr bool is_complete() {
  if (std::size(kEntries) != static_cast<size_t>(Text::kCount)) return false;
  for (size_t i = 0; i < std::size(kEntries); ++i) {
    if (kEntries[i].id != static_cast<Text>(i)) return false;
  }
  return true;
}
static_assert(is_complete(), "one entry per text, in the order of the enumeration");

}  // namespace

const char* text(Text id, Language language) {
  const Entry& entry = kEntries[static_cast<size_t>(id)];
  return language == Language::zh ? entry.zh : entry.en;
}

}  // namespace worked

Language language_from_locale(const char* lc_all, const char* lc_messages, const char* lang) {
  for (const char* value : {lc_all, lc_messages, lang}) {
    if (value == nullptr || *value == '\0') continue;
    return std::string_view(value).starts_with("zh") ? Language::zh : Language::en;
  }
  return Language::en;
}

Language language_from_environment() {
  return language_from_locale(std::getenv("LC_ALL"), std::getenv("LC_MESSAGES"), std::getenv("LANG"));
}

}  // namespace liuli
