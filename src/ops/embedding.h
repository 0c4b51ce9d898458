// Token ids to rows of the embedding table.
#pragma once
#include <span>

#include "ops/context.h"
#include "ops/matrix.h"

namespace liuli {

/// x_i = scale · table[token_i].   Shapes: table [vocab_size, d_model], x [n_tokens, d_model].
/// Tokens are within the table (the caller checked).
void embedding_forward(OpContext& c, const Matrix& table, std::span<const int> tokens, float scale, Rows x);

}  // namespace liuli
