#include "trace/stream_places.h"

namespace liuli {
namespace {

bool has(NormKind kind) { return kind != NormKind::none; }

Place at(const Place& in_block, Point point) { return {point, in_block.layer, tower(in_block.stack)}; }
Place norm_out(const Place& in_block, NormSite site) {
  return at(in_block, norm_point(site, NormStage::out));
}

}  // namespace

const LayerPlan& plan_of(const ModelConfig& config, const Place& in_block) {
  const auto& layers = in_block.stack == Stack::encoder ? config.encoder_layers : config.layers;
  return layers[static_cast<size_t>(in_block.layer)];
}

Place block_input(const Place& in_block) { return at(in_block, Point::resid_pre); }

Place block_output(const ModelConfig& config, Stack stack, int layer) {
  const Place place{Point::resid_post, layer, tower(stack)};
  return has(plan_of(config, place).ffn_norm.after_add) ? at(place, Point::normalized_resid_post) : place;
}

Place after_attention(const ModelConfig& config, const Place& in_block) {
  const bool post = has(plan_of(config, in_block).attn_norm.after_add);
  return at(in_block, post ? Point::normalized_resid_mid : Point::resid_mid);
}

Place after_cross_attention(const ModelConfig& config, const Place& in_block) {
  const LayerPlan& plan = plan_of(config, in_block);
  if (!plan.cross_attention) return after_attention(config, in_block);
  return at(in_block, has(plan.cross_norm.after_add) ? Point::normalized_resid_cross : Point::resid_cross);
}

Place attention_input(const ModelConfig& config, const Place& in_block) {
  const bool pre = has(plan_of(config, in_block).attn_norm.before);
  return pre ? norm_out(in_block, NormSite::ln1) : block_input(in_block);
}

Place cross_input(const ModelConfig& config, const Place& in_block) {
  const bool pre = has(plan_of(config, in_block).cross_norm.before);
  return pre ? norm_out(in_block, NormSite::ln_cross) : after_attention(config, in_block);
}

Place feed_forward_input(const ModelConfig& config, const Place& in_block) {
  const bool pre = has(plan_of(config, in_block).ffn_norm.before);
  return pre ? norm_out(in_block, NormSite::ln2) : after_cross_attention(config, in_block);
}

Place stream_end(const ModelConfig& config) {
  return block_output(config, config.is_encoder_decoder() ? Stack::decoder : Stack::blocks,
                      static_cast<int>(config.n_layers) - 1);
}

Place output_input(const ModelConfig& config) {
  if (!has(config.final_norm)) return stream_end(config);
  return {norm_point(NormSite::ln_final, NormStage::out)};
}

Place norm_input(const ModelConfig& config, const Place& value, NormSite site) {
  if (site == NormSite::embed_ln) return {Point::embed_sum, -1, value.stack};
  if (site == NormSite::ln_final) return stream_end(config);
  const LayerPlan& plan = plan_of(config, value);
  switch (site) {
    case NormSite::ln1:
      return has(plan.attn_norm.before) ? block_input(value) : at(value, Point::resid_mid);
    case NormSite::ln1_post:
      return at(value, Point::attn_out_proj);
    case NormSite::ln_cross:
      return has(plan.cross_norm.before) ? after_attention(config, value) : at(value, Point::resid_cross);
    case NormSite::ln2:
      return has(plan.ffn_norm.before) ? after_cross_attention(config, value) : at(value, Point::resid_post);
    default:
      return at(value, Point::mlp_out_raw);
  }
}

}  // namespace liuli
