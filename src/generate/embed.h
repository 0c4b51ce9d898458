// Texts as vectors: the last rows of each, pooled.
#pragma once
#include <span>
#include <vector>

#include "model/transformer.h"

namespace liuli {

/// One vector per text, all texts in one pass: the mean of a text's rows after the final norm, or its first or last row.
/// A vector depends on its own text only. Shapes: a vector is [d_model]. REQUIRES: texts of 1 … max_seq_len tokens
/// within the vocabulary.
std::vector<std::vector<float>> embed_texts(const Model& model, Runner& runner, ProductClass product_class,
                                            std::span<const std::vector<int>> texts, Pooling pooling);

/// x / max(‖x‖₂, 1e-12).
void normalise_length(std::vector<float>& vector);

}  // namespace liuli
