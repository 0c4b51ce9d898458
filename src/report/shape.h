// The arithmetic behind include/liuli/shape.h for built-in models.
#pragma once
#include "convert/known_models.h"
#include "liuli/shape.h"

namespace liuli {

ModelShape shape_of(const KnownModel& model, int64_t context);

}  // namespace liuli
