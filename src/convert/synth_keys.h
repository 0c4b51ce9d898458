// The metadata of a made-up model's file.
#pragma once
#include <string>

#include "convert/known_models.h"
#include "convert/type_mix.h"
#include "formats/gguf_writer.h"
#include "liuli/config.h"

namespace liuli {

/// A decoder's sizes and arithmetic as its files' readers have them. `context` is the trained context to claim.
ModelConfig config_of(const KnownModel& model, int64_t context);

/// Sizes, arithmetic and a made-up vocabulary, as other engines expect them.
GgufKeys synth_keys(const KnownModel& model, const TypeMix& mix, int64_t context,
                    const std::string& description);

}  // namespace liuli
