// A comparison of two runs, for people and for programs.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "liuli/diff.h"
#include "liuli/engine.h"

namespace liuli::cli {

/// What a report does not know of its two sides.
struct DiffSides {
  const Engine& engine;
  std::string name, product_class, reference_name, reference_class;
  const std::vector<int>& ids;
};

/// columns: which points of a block the table of layers shows.
std::string diff_text(const DiffReport& report, const DiffSides& sides,
                      const std::vector<std::string>& columns);
nlohmann::ordered_json diff_json(const DiffReport& report, const DiffSides& sides);

}  // namespace liuli::cli
