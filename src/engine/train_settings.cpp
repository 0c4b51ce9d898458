// run.json: every setting of a run by name, read and written by one table.
#include <cmath>
#include <set>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "formats/json_metadata.h"
#include "liuli/error.h"
#include "liuli/train.h"

namespace liuli {
namespace {

using Json = nlohmann::ordered_json;
using Target =
    std::variant<int64_t*, uint64_t*, int*, double*, bool*, std::string*, std::vector<std::string>*>;

// A setting's place in the file, nested names joined by dots; short forms behind '|' are read, too.
struct Field {
  const char* keys;
  Target (*target)(TrainSettings&);
  double least = 0, most = 1e15;  // of numbers
};

constexpr double kOne = 1, kMostCount = 1e9;

#define LIULI_FIELD(member) [](TrainSettings& s) -> Target { return &s.member; }
const Field kFields[] = {
    {"model", LIULI_FIELD(model)},
    {"initialisation.scheme|initialisation", LIULI_FIELD(initialisation)},
    {"initialisation.std", LIULI_FIELD(initial_std), 0, 1e3},
    {"tokenizer", LIULI_FIELD(tokenizer)},
    {"tokenizer.kind", LIULI_FIELD(new_tokenizer.kind)},
    {"tokenizer.vocab_size", LIULI_FIELD(new_tokenizer.vocab_size), kOne, kMostCount},
    {"tokenizer.min_count", LIULI_FIELD(new_tokenizer.min_count), 0, kMostCount},
    {"tokenizer.special", LIULI_FIELD(new_tokenizer.special)},
    {"data", LIULI_FIELD(data)},
    {"held_out_data", LIULI_FIELD(held_out_data)},
    {"separator", LIULI_FIELD(separator)},
    {"held_out", LIULI_FIELD(held_out), 0, 0.9},
    {"output", LIULI_FIELD(output)},
    {"steps", LIULI_FIELD(steps), kOne, 1e12},
    {"batch", LIULI_FIELD(batch), kOne, 1e6},
    {"sequence_length", LIULI_FIELD(sequence_length), kOne, kMostCount},
    {"accumulate", LIULI_FIELD(accumulate), kOne, 1e6},
    {"optimizer.kind|optimizer", LIULI_FIELD(optimizer)},
    {"optimizer.beta1", LIULI_FIELD(beta1), 0, kOne},
    {"optimizer.beta2", LIULI_FIELD(beta2), 0, kOne},
    {"optimizer.eps", LIULI_FIELD(eps), 0, kOne},
    {"optimizer.weight_decay", LIULI_FIELD(weight_decay), 0, 1e3},
    {"optimizer.momentum", LIULI_FIELD(momentum), 0, kOne},
    {"optimizer.clip", LIULI_FIELD(clip), 0, 1e9},
    {"learning_rate.schedule", LIULI_FIELD(schedule)},
    {"learning_rate.peak|learning_rate", LIULI_FIELD(learning_rate), 0, 1e30},
    {"learning_rate.min_factor", LIULI_FIELD(min_factor), 0, kOne},
    {"learning_rate.decay_fraction", LIULI_FIELD(decay_fraction), 0, kOne},
    {"learning_rate.warm_up", LIULI_FIELD(warm_up), 0, 1e12},
    {"dropout", LIULI_FIELD(dropout), 0, 0.95},
    {"label_smoothing", LIULI_FIELD(label_smoothing), 0, 0.95},
    {"recompute", LIULI_FIELD(recompute)},
    {"products", LIULI_FIELD(products)},
    {"seed", LIULI_FIELD(seed)},
    {"threads", LIULI_FIELD(threads), 0, 4096},
    {"evaluate.every", LIULI_FIELD(evaluate_every), 0, 1e12},
    {"evaluate.windows", LIULI_FIELD(evaluate_windows), kOne, 1e9},
    {"checkpoint.every", LIULI_FIELD(checkpoint_every), 0, 1e12},
    {"checkpoint.keep", LIULI_FIELD(keep), kOne, 1e6},
    {"sample.every", LIULI_FIELD(sample_every), 0, 1e12},
    {"sample.tokens", LIULI_FIELD(sample_tokens), kOne, 1e6},
    {"sample.prompt", LIULI_FIELD(sample_prompt)},
    {"sample.temperature", LIULI_FIELD(temperature), 0, 1e3},
    {"lora.rank", LIULI_FIELD(lora_rank), 0, 65536},
    {"lora.alpha", LIULI_FIELD(lora_alpha), 0, 1e6},
    {"lora.targets", LIULI_FIELD(lora_targets)},
};
#undef LIULI_FIELD

[[noreturn]] void invalid(const std::string& place, const std::string& what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", place, what));
}

double checked(const std::string& place, const Field& field, const std::string& key, double value) {
  if (!std::isfinite(value) || value < field.least || value > field.most)
    invalid(place, fmt::format("{} is {}, expected {} … {}", key, value, field.least, field.most));
  return value;
}

// One key's value into its setting. A string of several paths is one path.
void read_field(const std::string& place, const JsonMetadata& json, const Field& field,
                const std::string& key, TrainSettings& settings) {
  const Target target = field.target(settings);
  if (auto* text = std::get_if<std::string*>(&target))
    **text = *json.text(key);
  else if (auto* texts = std::get_if<std::vector<std::string>*>(&target))
    **texts = json.is_array(key) ? *json.texts(key) : std::vector<std::string>{*json.text(key)};
  else if (auto* flag = std::get_if<bool*>(&target))
    **flag = *json.boolean(key);
  else if (auto* number = std::get_if<double*>(&target))
    **number = checked(place, field, key, *json.number(key));
  else {
    const int64_t value = *json.integer(key);
    checked(place, field, key, static_cast<double>(value));
    if (auto* wide = std::get_if<int64_t*>(&target)) **wide = value;
    if (auto* seed = std::get_if<uint64_t*>(&target)) **seed = static_cast<uint64_t>(value);
    if (auto* small = std::get_if<int*>(&target)) **small = static_cast<int>(value);
  }
}

std::vector<std::string> alternatives(const std::string& keys) {
  const size_t bar = keys.find('|');
  if (bar == std::string::npos) return {keys};
  return {keys.substr(0, bar), keys.substr(bar + 1)};
}

Json value_of(const Target& target) {
  return std::visit([](const auto* value) { return Json(*value); }, target);
}

bool is_default(const Field& field, TrainSettings& settings) {
  TrainSettings usual;
  return value_of(field.target(settings)) == value_of(field.target(usual));
}

// {"model": {…}}: a configuration and no path; it is taken out whole, its keys are the family's business.
nlohmann::json without_model(const std::string& place, const std::string& text, TrainSettings& settings) {
  nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object())
    throw Error(ErrorCode::corrupt_file, fmt::format("{}: holds no JSON object", place));
  const auto model = object.find("model");
  if (model != object.end() && model->is_object()) {
    settings.model_config = model->dump();
    object.erase(model);
  }
  return object;
}

}  // namespace

TrainSettings parse_train_settings(const std::string& text, const std::string& place) {
  TrainSettings settings;
  const JsonMetadata json(place, without_model(place, text, settings));
  std::set<std::string> known;
  for (const Field& field : kFields)
    for (const std::string& key : alternatives(field.keys)) {
      known.insert(key);
      if (json.has(key)) read_field(place, json, field, key, settings);
    }
  for (const std::string& key : json.keys())
    if (known.count(key) == 0) invalid(place, fmt::format("there is no setting \"{}\"", key));
  return settings;
}

std::string to_json(const TrainSettings& settings) {
  TrainSettings copy = settings;
  Json json = Json::object();
  if (!settings.model_config.empty()) json["model"] = Json::parse(settings.model_config);
  for (const Field& field : kFields) {
    const std::string key = alternatives(field.keys).front();
    const bool nested = settings.tokenizer.empty() == (key == "tokenizer");  // a folder, or what makes one
    if (key.rfind("tokenizer", 0) == 0 && nested) continue;
    if (is_default(field, copy) && (key == "model" || key.rfind("lora", 0) == 0)) continue;
    Json* at = &json;
    const size_t dot = key.find('.');
    if (dot != std::string::npos) at = &json[key.substr(0, dot)];
    (*at)[dot == std::string::npos ? key : key.substr(dot + 1)] = value_of(field.target(copy));
  }
  return json.dump(2);
}

}  // namespace liuli
