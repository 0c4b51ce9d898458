#include "engine/engine_parts.h"
#include "trace/explain_number.h"

namespace liuli {

std::vector<NumberExplanation> Engine::explain(const std::vector<int>& ids,
                                               const std::vector<std::string>& at,
                                               const ExplainNumberSettings& settings) {
  parts_->check_tokens(ids, 0, config().max_seq_len);
  parts_->check_beside(settings.beside, ids.size());
  return explain_numbers(*parts_->model, *parts_->runner, {ids, at, parts_->classes.prompt, settings});
}

}  // namespace liuli
