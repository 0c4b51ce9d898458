// The tour: one run of a model as one page that opens offline, from a line of text to the first new token.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "liuli/explain.h"
#include "liuli/trace.h"

namespace liuli {

class Engine;

struct TourSettings {
  BesideTheTokens beside = {};     ///< BERT's segments
  std::vector<int> layers = {};    ///< whose every value is on the page; empty: first, last and some between
  int64_t max_bytes = 10'000'000;  ///< of such values, as text; decides how many layers `layers` empty means
  int n_generate = 6;              ///< tokens to continue the prompt with, greedily
  int n_candidates = 12;           ///< likeliest next tokens whose output rows are on the page
  std::string model;               ///< what a command calls the model: "smollm2"
  Language language = Language::en;  ///< the page speaks both; this one first
  int digits = 4;
  std::function<void(int done, int total)> on_progress = {};  ///< parts of the collection; may throw to stop
};

constexpr int kTourSchema = 1;      ///< "version" in the data; docs/tour.md describes it
constexpr int kTourMaxTokens = 64;  ///< a longer prompt makes no page that a phone can open

/// What the page shows, as the run had it: {"schema": "liuli.tour", "version": 1, …}. Tensors are base64 of
/// little-endian float32 under the names of their points.
/// Errors: invalid_argument (tokens, layers; more than kTourMaxTokens), unsupported (an encoder-decoder).
nlohmann::ordered_json collect_tour(Engine& engine, const std::vector<int>& ids,
                                    const TourSettings& settings);

/// The page with this data in it: HTML, complete in itself.
std::string tour_page(const nlohmann::ordered_json& data);

}  // namespace liuli
