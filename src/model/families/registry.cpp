#include "core/check.h"
#include "model/families/family.h"

namespace liuli {
namespace {

constexpr const Family* kFamilies[] = {
    &kLlama,  &kPhi3,  &kSmolLm3, &kQwen2, &kQwen2Moe,        &kQwen3,    &kQwen3Moe,
    &kGemma3, &kOlmo2, &kGpt2,    &kBert,  &kTransformer2017, &kDeepseek, &kStack};

// Whether `name` is one of the alternatives "a|b|c".
bool is_one_of(std::string_view name, std::string_view alternatives) {
  while (!alternatives.empty()) {
    const size_t end = alternatives.find('|');
    if (alternatives.substr(0, end) == name) return true;
    if (end == std::string_view::npos) break;
    alternatives.remove_prefix(end + 1);
  }
  return false;
}

std::string_view names_of(const Family& family, Naming naming) {
  return naming == Naming::gguf ? family.name : family.model_types;
}

}  // namespace

const Family* find_family(Naming naming, std::string_view architecture) {
  for (const Family* family : kFamilies)
    if (is_one_of(architecture, names_of(*family, naming))) return family;
  return nullptr;
}

const Family& family_of(const ModelConfig& config) {
  for (const Family* family : kFamilies)
    if (config.family == family->name || is_one_of(config.family, family->model_types)) return *family;
  LIULI_CHECK(false);  // a configuration comes from a family
}

std::string family_names(Naming naming) {
  std::string names;
  for (const Family* family : kFamilies) {
    if (names_of(*family, naming).empty()) continue;  // not in that kind of file
    if (!names.empty()) names += ", ";
    for (const char c : names_of(*family, naming)) names.append(c == '|' ? ", " : std::string(1, c));
  }
  return names;
}

}  // namespace liuli
