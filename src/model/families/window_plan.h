// Sliding windows as Qwen's folders and the "layer_types" of newer ones describe them.
#pragma once
#include "model/families/config_reader.h"

namespace liuli {

/// Whether each layer is windowed, from "layer_types"; empty when the file has none. Errors: corrupt_file for another
/// number of layers, unsupported for a kind that is neither full_attention nor sliding_attention.
std::vector<bool> read_windowed_layers(ConfigReader& reader, int64_t n_layers);

/// "sliding_window" where "use_sliding_window" is on: for the layers of "layer_types", else from max_window_layers on.
void read_optional_window(ConfigReader& reader, ModelConfig& config);

}  // namespace liuli
