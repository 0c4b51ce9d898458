// A configuration as the keys of a GGUF file.
#pragma once
#include "formats/gguf_writer.h"
#include "liuli/config.h"

namespace liuli {

/// general.architecture, and every key "<architecture>.…" that other engines and Liuli itself need. The one place where
/// they are written.
///
/// config: in GGUF's terms (config_in_gguf), of a family that GGUF has a name for. What the keys cannot say is left out:
/// whoever must know reads them back (check_keys).
void add_architecture_keys(const ModelConfig& config, GgufKeys& keys);

/// Yarn's temperature for the scores of latent attention, as GGUF states it: scores grow by (1 + multiplier · ln factor)².
double yarn_log_multiplier(const ModelConfig& config);

}  // namespace liuli
