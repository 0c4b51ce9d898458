#include "model/block.h"

#include "ops/activation.h"

namespace liuli {

// The article's six steps. A norm slot the family lacks passes its input through, so that pre-norm (Llama,
// Qwen), sandwich norms (Gemma 3), norms on the branches (OLMo 2) and post-norm (BERT, 2017) are one piece of
// code.
Rows block_forward(const Block& b, int layer, Rows x, Step& s) {
  const Arena::Scope scratch(s.ops.scratch);
  s.probe(Point::resid_pre, layer, x);

  Rows h = normalized(b.attn_norm.before, NormSite::ln1, layer, x, s);  // 1 norm
  Rows a = attention_forward(b.attention, layer, h, s);                 // 2 attention
  if (a.n < x.n) x = s.kept_rows(x);
  if (x.n == 0) return x;
  s.probe(Point::attn_out_proj, layer, a);
  norm_in_place(b.attn_norm.on_output, NormSite::ln1_post, layer, a, s);
  s.probe(Point::attn_out, layer, a);
  add_in_place(s.ops, x, a, b.residual_scale);  // 3 add to the residual stream
  s.probe(Point::resid_mid, layer, x);
  post_norm(b.attn_norm.after_add, NormSite::ln1, Point::normalized_resid_mid, layer, x, s);
  if (b.cross) cross_attention_step(b, layer, x, s);  // the 2017 decoder: the same over the encoder's output

  Rows g = normalized(b.ffn_norm.before, NormSite::ln2, layer, x, s);  // 4 norm
  Rows f = feed_forward(b.ffn, layer, g, s);                           // 5 feed-forward
  s.probe(Point::mlp_out_raw, layer, f);
  norm_in_place(b.ffn_norm.on_output, NormSite::ln2_post, layer, f, s);
  s.probe(Point::mlp_out, layer, f);
  add_in_place(s.ops, x, f, b.residual_scale);  // 6 add to the residual stream
  s.probe(Point::resid_post, layer, x);
  post_norm(b.ffn_norm.after_add, NormSite::ln2, Point::normalized_resid_post, layer, x, s);
  return x;
}

}  // namespace liuli
