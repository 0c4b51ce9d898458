#include "ops/embedding.h"

#include "core/check.h"

namespace liuli {

void embedding_forward(OpContext& c, const Matrix& table, std::span<const int> tokens, float scale, Rows x) {
  LIULI_CHECK(static_cast<int64_t>(tokens.size()) == x.n && table.d_in() == x.width);
  c.pool.parallel_for(x.n, [&](int64_t begin, int64_t end, int) {
    std::vector<uint8_t> file_row;
    for (int64_t i = begin; i < end; i++) {
      table.decode_row(tokens[static_cast<size_t>(i)], x.row(i), file_row);
      if (scale != 1.0f) c.rows.scale(x.row(i), scale, x.width);
    }
  });
}

}  // namespace liuli
