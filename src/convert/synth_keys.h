// The metadata of a made-up model's file.
#pragma once
#include <string>

#include "convert/known_models.h"
#include "convert/type_mix.h"
#include "formats/gguf_writer.h"

namespace liuli {

/// Sizes, arithmetic and a made-up vocabulary, as other engines expect them. `context` is the trained context to claim.
GgufKeys synth_keys(const KnownModel& model, const TypeMix& mix, int64_t context,
                    const std::string& description);

}  // namespace liuli
