// How the first new token came about.
#pragma once
#include "liuli/report.h"
#include "tokenizers/tokenizer.h"
#include "trace/lens.h"

namespace liuli {

/// Builds the report from what the probe kept while the prompt ran. chosen: the token that was sampled;
/// product_class: of the lens's output matrix.
FirstTokenReport first_token_report(const Model& model, Runner& runner, const Tokenizer& tokenizer,
                                    const LastTokenProbe& seen, int prompt_token, int chosen,
                                    ProductClass product_class);

}  // namespace liuli
