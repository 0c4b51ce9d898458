// Token ids to rows of the embedding table.
#pragma once
#include <span>

#include "ops/context.h"
#include "ops/matrix.h"

namespace liuli {

/// x_i = scale · table[token_i].   Shapes: table [vocab_size, d_model], x [n_tokens, d_model].
/// Tokens are within the table (the caller checked).
void embedding_forward(OpContext& c, const Matrix& table, std::span<const int> tokens, float scale, Rows x);

/// d_table[token_i] += scale · dx_i, rows ascending: a token that stands twice gathers both.
/// `skipped` is a token whose row learns nothing here (padding); a null table: nobody learns.
void embedding_backward(OpContext& c, float* d_table, std::span<const int> tokens, float scale, Rows dx,
                        int skipped = -1);

/// x_t[2i] = sin(t · 10000^(−2i / width)), x_t[2i + 1] = cos(the same): the 2017 Transformer's positions.
/// Shapes: x [positions.size(), width]; width is even.
void sinusoid_forward(OpContext& c, std::span<const int> positions, Rows x);

}  // namespace liuli
