#include "model/families/family.h"

namespace liuli {
namespace {
constexpr const Family* kFamilies[] = {&kLlama, &kQwen2, &kQwen3, &kGemma3, &kOlmo2, &kGpt2};
}

const Family* find_family(std::string_view architecture) {
  for (const Family* family : kFamilies)
    if (architecture == family->name) return family;
  return nullptr;
}

std::string family_names() {
  std::string names;
  for (const Family* family : kFamilies) names += (names.empty() ? "" : ", ") + std::string(family->name);
  return names;
}

}  // namespace liuli
