// Block encoders: rows of f32 become the bytes of a stored type, with as little error as a search can find.
//
// The error is Σ wᵢ (xᵢ − x̂ᵢ)², wᵢ the column's importance (1 without an importance matrix) and x̂ what the
// decoder makes of the bytes. Scales are rounded as they are stored before the codes are chosen, so that a
// rounded scale costs nothing a better code could have saved. The same row gives the same bytes everywhere:
// sums have a fixed order and nothing depends on the instruction set or on threads.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace liuli {

/// Whether encode_row() writes the type: F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K…Q6_K IQ4_NL IQ4_XS.
bool can_encode(DType type);

/// Encodes n values (a multiple of the block) into row_bytes(type, n) bytes. `importance` is null or n weights;
/// zero and negative ones count as a millionth of the row's mean, a row without any as all ones.
/// REQUIRES: can_encode(type), finite x. F16 turns |x| ≥ 65520 into Inf (the caller looks); scales of blocks
/// saturate at the largest f16.
void encode_row(DType type, const float* x, int64_t n, const float* importance, uint8_t* out);

}  // namespace liuli
