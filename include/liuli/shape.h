// How large a model is, without its weights: parameters by part, bytes, cache, arithmetic per token.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "liuli/cache_type.h"

namespace liuli {

/// Parameters of one kind, all layers together.
struct ShapePart {
  std::string name;        ///< "attention q", "experts"
  int64_t parameters = 0;  ///< biases included
  int64_t active = 0;      ///< of these, what one token uses: the chosen experts
};

/// A whole file's tensors in one way of storing them.
struct ShapeBytes {
  std::string type;
  int64_t bytes = 0;
  double bits = 0;  ///< per parameter
};

struct ModelShape {
  std::string name, title;
  std::string architecture;  ///< GGUF's; empty where it has none
  int64_t vocab_size = 0, d_model = 0, d_ff = 0, n_layers = 0, n_encoder_layers = 0;
  int64_t n_heads = 0, n_kv_heads = 0, head_dim = 0, trained_context = 0;
  int64_t n_experts = 0, n_experts_active = 0, expert_d_ff = 0, n_dense_layers = 0;
  bool tied_embeddings = false;

  std::vector<ShapePart> parts;
  int64_t parameters = 0;
  int64_t active_parameters = 0;  ///< used by one token; both embedding tables counted whole
  std::vector<ShapeBytes> bytes;

  /// Cache of keys and values, bytes per token; 0 where a form does not apply. The formulas are those of 16 bits.
  CacheType cache_type = CacheType::automatic;
  int64_t cache_plain = 0;    ///< as if every query head had its own k and v: 2 · L · H · h · 2
  int64_t cache_grouped = 0;  ///< k and v of n_kv_heads heads: 2 · L · K · h · 2
  int64_t cache_latent = 0;   ///< MLA: one latent and one rotated key per layer: L · (kv_lora + rope) · 2
  int64_t context = 0;        ///< the number of tokens of the next two
  int64_t cache_bytes = 0;    ///< of the smallest form that applies, at `context`
  int64_t cache_bytes_windowed = 0;  ///< the same where windowed layers keep their window only

  double product_flops = 0;  ///< per token: 2 · weights that multiply (chosen experts only, output included)
  double attention_flops = 0;         ///< per token and visible key: 2 · L · H · (key width + value width)
  double attention_flops_latent = 0;  ///< the same on MLA's latents directly ("absorbed"); 0: no MLA
  double flops_at_context = 0;        ///< of one token that sees `context` keys
};

/// "llama-3-8b", …: the models of which the sizes are built in.
std::vector<std::string> known_model_names();

/// context: tokens to count cache and attention for; 0: 4096 or the trained context, whichever is less.
/// Errors: not_found (names what is known); invalid_argument for a negative context.
ModelShape shape_of_known_model(std::string_view name, int64_t context = 0,
                                CacheType cache_type = CacheType::automatic);

/// The same of a file: its own tensors and their stored types. Errors: as read_config.
ModelShape shape_of_file(const std::string& path, int64_t context = 0,
                         CacheType cache_type = CacheType::automatic);

}  // namespace liuli
