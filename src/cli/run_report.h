// How the first new token came about, told from the run's own numbers.
#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "liuli/explain.h"
#include "liuli/report.h"

namespace liuli::cli {

/// One line per block, then the first block's norm worked out by hand, then what to try next.
std::string first_token_text(const FirstTokenReport& report, const std::string& model, Language language,
                             int digits);

/// The same as data.
nlohmann::ordered_json first_token_json(const FirstTokenReport& report, Language language, int digits);

}  // namespace liuli::cli
