#include "model/families/window_plan.h"

#include <fmt/format.h>

namespace liuli {

std::vector<bool> read_windowed_layers(ConfigReader& reader, int64_t n_layers) {
  const Key key{nullptr, "layer_types"};
  std::vector<bool> windowed;
  for (const std::string& kind : reader.texts_or_none(key)) {
    if (kind != "full_attention" && kind != "sliding_attention")
      reader.refuse(key, fmt::format("names \"{}\", a kind of attention that is not supported", kind));
    windowed.push_back(kind == "sliding_attention");
  }
  if (!windowed.empty() && static_cast<int64_t>(windowed.size()) != n_layers)
    reader.corrupt(key, fmt::format("has {} entries for {} layers", windowed.size(), n_layers));
  return windowed;
}

void read_optional_window(ConfigReader& reader, ModelConfig& c) {
  const int64_t window = reader.count_or_zero({nullptr, "sliding_window"}, 0, 1 << 30);
  const int64_t first = reader.count_or_zero({nullptr, "max_window_layers"}, 0, 1 << 20);
  const std::vector<bool> windowed = read_windowed_layers(reader, c.n_layers);
  if (!reader.flag_or({nullptr, "use_sliding_window"}, false) || window == 0) return;
  for (int64_t i = 0; i < c.n_layers; i++) {
    const auto at = static_cast<size_t>(i);
    if (windowed.empty() ? i >= first : windowed[at]) c.layers[at].sliding_window = static_cast<int>(window);
  }
}

}  // namespace liuli
