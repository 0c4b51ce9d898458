// Attention with somebody watching the scores: the same kernel, and the values it saw.
#pragma once
#include "model/step.h"
#include "model/weights.h"

namespace liuli {

/// The kernel's arguments for every row of a sequence and every query head of a kv head; z has the shape of
/// q.
kernels::AttentionArgs attention_arguments(const Attention& a, int layer, const SequenceRows& sequence,
                                           int64_t kv_head, Rows q, Rows z);

/// The kernel's scratch, one piece per thread of the step's pool.
struct AttentionScratch {
  uint8_t* data;
  int64_t bytes_per_thread;
  void* of(int thread) const { return data + bytes_per_thread * thread; }
};
AttentionScratch attention_scratch(const Attention& a, const Step& s);

/// What this step takes off its keys before they are stored: the offset in the classes with a 16-bit cache,
/// else null.
const float* rounding_offset(const Attention& a, const Step& s);

/// The kernels of the pages that the step's rows look at, and which of them the step's class takes.
const kernels::AttentionKernels& cache_kernels(const Step& s);
/// Those of keys and values that are formed anew for a step: pages of codes would only round them once more.
const kernels::AttentionKernels& expanded_attention(const OpContext& ops);
using Attend = void (*)(const kernels::AttentionArgs& args, void* scratch) noexcept;
Attend attend_in(ProductClass product_class, const kernels::AttentionKernels& kernels);

/// Whether the listener wants scores or the pattern of this layer.
bool watches_scores(int layer, const Step& s);

/// Attention of the step's one watched sequence, then scores_raw, scores, attn_scores and pattern to the
/// listener. The pattern is exp(s − m) / l from the kernel's own scores; z keeps its bits, but for rows that the listener
/// changed.
void attend_and_show_scores(const Attention& a, int layer, Rows q, Rows z, Step& s);

}  // namespace liuli
