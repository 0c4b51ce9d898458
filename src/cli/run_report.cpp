#include "cli/run_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/text_table.h"

namespace liuli::cli {
namespace {

// The report's sentences; {} are filled by fmt.
struct Words {
  const char *heading, *intro, *start;
  const char *block, *stream, *attention, *feed_forward, *lens, *probability, *chosen;
  const char *outro, *norm_subject, *next, *next_norm, *next_scores, *next_trace, *next_plan;
};

constexpr Words kEnglish = {
    "How the first new token came about",
    "The prompt's last token “{}” rises through {} blocks. Each adds what its attention and its "
    "feed-forward\n"
    "found to the residual stream x; the lens shows which token the model would say if it stopped there.",
    "embedding",
    "block",
    "‖x‖",
    "attention +",
    "feed-forward +",
    "lens says",
    "its p",
    "p of “{}”",
    "Chosen: “{}” (token {}), probability {:.4f} after the last block.",
    "blocks.0.ln1 of “{}”",
    "Try next:",
    "the same norm elsewhere",
    "one row of attention scores by hand",
    "every block's residual stream as a file",
    "which kernel each weight uses, and why"};

constexpr Words kChinese = {
    "第一个新词元是怎么来的",
    "提示的最后一个词元“{}”逐层上升，共 {} 层。每层把注意力和前馈网络算出的结果加到残差流 x 上；\n"
    "透镜一栏：如果模型停在这一层，它会说哪个词元。",
    "嵌入",
    "层",
    "‖x‖",
    "注意力加",
    "前馈加",
    "透镜",
    "其概率",
    "“{}”的概率",
    "选中：“{}”（词元 {}），最后一层之后的概率为 {:.4f}。",
    "blocks.0.ln1，词元“{}”",
    "接下来可以试试：",
    "别处的同一种归一化",
    "手算一行注意力分数",
    "把每一层的残差流写成文件",
    "每个权重用哪个内核，为什么"};

const Words& words_of(Language language) { return language == Language::zh ? kChinese : kEnglish; }

std::string block_table(const FirstTokenReport& report, const Words& words) {
  const std::string chosen = fmt::format(fmt::runtime(words.chosen), visible(report.chosen_text, 16));
  TextTable table({{words.block, Align::right},
                   {words.stream, Align::right},
                   {words.attention, Align::right},
                   {words.feed_forward, Align::right},
                   {words.lens},
                   {words.probability, Align::right},
                   {chosen, Align::right}});
  table.add_row({words.start, fmt::format("{:.3f}", report.embed_norm), "", "", "", "", ""});
  for (const BlockReport& block : report.blocks) {
    table.add_row({fmt::format("{}", block.layer), fmt::format("{:.3f}", block.resid_norm),
                   fmt::format("{:.3f}", block.attn_norm), fmt::format("{:.3f}", block.mlp_norm),
                   visible(block.lens_text), fmt::format("{:.4f}", block.lens_probability),
                   fmt::format("{:.4f}", block.chosen_probability)});
  }
  return table.render();
}

auto worked_norm(const FirstTokenReport& report, Language language, int digits) {
  NormInputs inputs;
  inputs.kind = report.norm_kind;
  inputs.row.assign(report.norm_row.begin(), report.norm_row.end());
  inputs.gamma.assign(report.norm_gamma.begin(), report.norm_gamma.end());
  inputs.beta.assign(report.norm_beta.begin(), report.norm_beta.end());
  inputs.eps = report.norm_eps;
  inputs.subject = fmt::format(fmt::runtime(words_of(language).norm_subject), visible(report.prompt_text));
  return explain_norm(inputs, language, digits);
}

// A model without a norm there (OLMo 2, BERT) has no row to work out.
bool has_norm(const FirstTokenReport& report) {
  return report.norm_kind != NormKind::none && !report.norm_row.empty();
}

std::string next_steps(const std::string& model, const Words& words) {
  TextTable table({{words.next}, {""}});
  const auto add = [&](const std::string& command, const char* what) {
    table.add_row({"  " + command, what});
  };
  add(fmt::format("liuli explain norm --model {} --prompt '…' --layer 1 --site ln2", model), words.next_norm);
  add(fmt::format("liuli explain scores --model {} --prompt '…' --layer 0 --head 0", model),
      words.next_scores);
  add(fmt::format("liuli trace {} --prompt '…' --points 'blocks.*.resid_post' -o x.safetensors", model),
      words.next_trace);
  add(fmt::format("liuli plan {}", model), words.next_plan);
  return table.render();
}

}  // namespace

std::string first_token_text(const FirstTokenReport& report, const std::string& model, Language language,
                             int digits) {
  const Words& words = words_of(language);
  std::string out = fmt::format("── {} ──\n", words.heading);
  out += fmt::format(fmt::runtime(words.intro), visible(report.prompt_text), report.blocks.size()) + "\n\n";
  out += block_table(report, words) + "\n";
  out += fmt::format(fmt::runtime(words.outro), visible(report.chosen_text), report.chosen_token,
                     report.chosen_probability) +
         "\n\n";
  if (has_norm(report)) {
    const TextStyle style{terminal_width(), isatty(STDOUT_FILENO) == 1};
    out += render_text(worked_norm(report, language, digits), style) + "\n";
  }
  return out + next_steps(model, words);
}

nlohmann::ordered_json first_token_json(const FirstTokenReport& report, Language language, int digits) {
  nlohmann::ordered_json json = {
      {"prompt_token", report.prompt_token},      {"prompt_text", report.prompt_text},
      {"embed_norm", report.embed_norm},          {"chosen_token", report.chosen_token},
      {"chosen_text", report.chosen_text},        {"chosen_probability", report.chosen_probability},
      {"blocks", nlohmann::ordered_json::array()}};
  for (const BlockReport& block : report.blocks) {
    json["blocks"].push_back({{"layer", block.layer},
                              {"resid_norm", block.resid_norm},
                              {"attn_norm", block.attn_norm},
                              {"mlp_norm", block.mlp_norm},
                              {"lens_token", block.lens_token},
                              {"lens_text", block.lens_text},
                              {"lens_probability", block.lens_probability},
                              {"chosen_probability", block.chosen_probability}});
  }
  if (has_norm(report)) {
    json["norm"] = nlohmann::ordered_json::parse(render_json(worked_norm(report, language, digits)));
  }
  return json;
}

}  // namespace liuli::cli
