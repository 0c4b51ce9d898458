// What every op needs to run: kernels, threads, scratch memory, and the class of matrix products.
#pragma once
#include <cstdint>

#include "core/arena.h"
#include "core/rows.h"
#include "core/thread_pool.h"
#include "kernels/kernels.h"

namespace liuli {

/// How matrix products round; chosen by the caller, never by the number of rows.
enum class ProductClass : uint8_t {
  prompt,  ///< bf16 tiles, NMSE ≤ 1e-5; F16 weights in 16-bit fixed point, ≤ 2e-8
  decode,  ///< 16-bit integer activations against the stored codes, NMSE ≈ 1e-9
  f32,     ///< f32 FMA over decoded weights, k ascending
  exact,   ///< scalar loops over decoded weights, sums in double: the second opinion
};
const char* to_string(ProductClass product_class);

struct OpContext {
  const kernels::Kernels& kernels;
  const kernels::RowKernels& rows;             ///< kernels.rows, or the exact ones
  const kernels::AttentionKernels& attention;  ///< by cache form
  ThreadPool& pool;
  Arena& scratch;
  ProductClass product_class;
  bool bf16_products = false;  ///< products of plain arrays round their operands to bf16 (training)
  bool int8_prompts = false;   ///< the prompt class multiplies codes in 8-bit blocks, NMSE ≤ 4e-5
};

/// Calls f(i) for each row; in parallel from `parallel_from` rows on (a fork-join costs about as much as 4
/// short rows).
template <class F>
void for_each_row(OpContext& c, int64_t n, F&& f, int64_t parallel_from = 4) {
  if (n < parallel_from) {
    for (int64_t i = 0; i < n; i++) f(i);
    return;
  }
  c.pool.parallel_for(n, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++) f(i);
  });
}

}  // namespace liuli
