#include "report/first_token.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace liuli {

FirstTokenReport first_token_report(const Model& model, Runner& runner, const Tokenizer& tokenizer,
                                    const LastTokenProbe& seen, int prompt_token, int chosen,
                                    ProductClass product_class) {
  const auto& rows = kernels::best_kernels().rows;
  FirstTokenReport report;
  report.prompt_token = prompt_token;
  report.prompt_text = tokenizer.decode({prompt_token});
  report.embed_norm = l2_norm(seen.embed);
  report.chosen_token = chosen;
  report.chosen_text = tokenizer.decode({chosen});
  LIULI_CHECK(seen.resid_post.size() == model.blocks.size());
  const Rows logits = lens_logits(model, runner, seen.resid_post, product_class);
  const int64_t usable = std::min<int64_t>(logits.width, tokenizer.vocab_size());
  for (size_t layer = 0; layer < model.blocks.size(); layer++) {
    const float* row = logits.row(static_cast<int64_t>(layer));
    const double lse = static_cast<double>(rows.log_sum_exp(row, usable));
    BlockReport block;
    block.layer = static_cast<int>(layer);
    block.resid_norm = l2_norm(seen.resid_post[layer]);
    block.attn_norm = l2_norm(seen.attn_out[layer]);
    block.mlp_norm = l2_norm(seen.mlp_out[layer]);
    block.lens_token = static_cast<int>(rows.argmax(row, usable));
    block.lens_text = tokenizer.decode({block.lens_token});
    block.lens_probability = std::exp(static_cast<double>(row[block.lens_token]) - lse);
    block.chosen_probability = std::exp(static_cast<double>(row[chosen]) - lse);
    report.blocks.push_back(std::move(block));
  }
  report.chosen_probability = report.blocks.back().chosen_probability;

  const Norm& norm = model.blocks.front().attn_norm.before;
  report.norm_kind = norm.kind;
  report.norm_eps = static_cast<double>(norm.eps);
  report.norm_row = seen.first_norm_input;
  if (norm.gamma != nullptr) report.norm_gamma.assign(norm.gamma, norm.gamma + model.config.d_model);
  if (norm.beta != nullptr) report.norm_beta.assign(norm.beta, norm.beta + model.config.d_model);
  return report;
}

}  // namespace liuli
