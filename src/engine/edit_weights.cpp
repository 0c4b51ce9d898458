#include "engine/edit_weights.h"

#include <algorithm>
#include <charconv>
#include <memory>

#include <fmt/format.h>

#include "engine/edit_places.h"

namespace liuli {
namespace {

[[noreturn]] void unsupported(const std::string& at, const std::string& why) {
  throw Error(ErrorCode::unsupported, fmt::format("{} cannot be edited: {}", at, why));
}

// The points that a matrix reads and writes.
struct Between {
  std::string input, output;
};

std::string attention_input(const LayerPlan& plan) {
  return plan.attn_norm.before == NormKind::none ? "resid_pre" : "ln1.out";
}
std::string ffn_input(const LayerPlan& plan) {
  if (plan.ffn_norm.before != NormKind::none) return "ln2.out";
  if (plan.cross_attention) return "normalized_resid_cross";
  return plan.attn_norm.after_add == NormKind::none ? "resid_mid" : "normalized_resid_mid";
}

// Of "blocks.3." and "mlp.down": what stands on both sides.
Between in_block(const ModelConfig& c, const std::string& at, const std::string& block,
                 const std::string& part, const LayerPlan& plan) {
  if (part == "attn.o") return {block + "attn.z", block + "attn.out_proj"};
  if (!c.is_latent() && (part == "attn.q" || part == "attn.k" || part == "attn.v"))
    return {block + attention_input(plan), block + part};
  const size_t dot = part.rfind('.');
  const std::string where = part.substr(0, dot), name = part.substr(dot + 1);
  const bool expert = where.starts_with("mlp.experts.");
  if (where != "mlp" && !expert) unsupported(at, "its input or output has no point");
  if (name == "down") return {block + where + ".post", block + where + ".out"};
  const bool first = name == "gate" || (name == "up" && !c.gated_ffn && !expert);
  if (name != "gate" && name != "up") unsupported(at, "its input or output has no point");
  return {block + ffn_input(plan), block + where + (first ? ".pre" : ".pre_linear")};
}

Between points_of(const ModelConfig& c, const std::string& at) {
  if (c.is_encoder_decoder()) unsupported(at, "weights of encoder-decoders stay as they are");
  if (at == "unembed.weight") {
    if (c.final_soft_cap > 0) unsupported(at, "the logits are seen after their soft cap");
    return {"ln_final.out", "logits"};
  }
  const std::string whole = at.substr(0, at.size() - std::string(".weight").size());
  if (!whole.starts_with("blocks.")) unsupported(at, "its input or output has no point");
  const size_t dot = whole.find('.', 7);
  const std::string block = whole.substr(0, dot + 1);
  size_t layer = 0;
  std::from_chars(whole.data() + 7, whole.data() + dot, layer);
  return in_block(c, at, block, whole.substr(dot + 1), c.layers[layer]);
}

struct RowChange {
  int64_t row;
  std::vector<float> delta;  ///< new − old
};

std::vector<RowChange> row_changes(const Edit& edit, const WeightValues& old) {
  const auto& shape = old.info.shape;
  if (shape.size() != 2) unsupported(edit.at, "it is a vector; change the point behind it");
  if (edit.index.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: name the row to change, of {}", edit.at, shape[0]));
  const AxisChoice rows(edit.at + ": row", edit.index[0], shape[0], shape[0]);
  const std::vector<IndexRange> all;
  const AxisChoice columns(edit.at + ": column", edit.index.size() > 1 ? edit.index[1] : all, shape[1],
                           shape[1]);
  if (edit.value.size() != 1 && static_cast<int64_t>(edit.value.size()) != shape[1])
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: the vector has {} values, a row has {}",
                                                         edit.at, edit.value.size(), shape[1]));
  std::vector<RowChange> changes;
  for (int64_t row = rows.first(); row <= rows.last(); row++) {
    if (!rows.has(row)) continue;
    RowChange change{row, std::vector<float>(static_cast<size_t>(shape[1]))};
    for (int64_t j = 0; j < shape[1]; j++) {
      if (!columns.has(j)) continue;
      const float w = old.values[static_cast<size_t>(row * shape[1] + j)];
      const float v = edit.value[edit.value.size() == 1 ? 0 : static_cast<size_t>(j)];
      const float now = edit.row_action == EditAction::set   ? v
                        : edit.row_action == EditAction::add ? w + v
                                                             : w * v;
      change.delta[static_cast<size_t>(j)] = now - w;
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

// The rows that entered the matrix in this pass.
struct Inputs {
  std::vector<float> values;
  int64_t width = 0;
};

int64_t row_width(const HookValue& v) {
  int64_t width = 1;
  for (size_t i = 1; i < v.shape.size(); i++) width *= v.shape[i];
  return width;
}

std::vector<Hook> product_hooks(const Between& between, std::vector<RowChange> changes,
                                std::function<void(int64_t)> applied) {
  auto inputs = std::make_shared<Inputs>();
  const Hook remember{{between.input}, [inputs](const HookValue& v) {
                        inputs->width = row_width(v);
                        inputs->values.resize(static_cast<size_t>(v.shape[0] * inputs->width));
                        for (int64_t i = 0; i < v.shape[0]; i++)
                          std::copy_n(v.data + i * v.strides[0], inputs->width,
                                      inputs->values.data() + i * inputs->width);
                      }};
  // An expert's down matrix reads that expert's rows; its other two read every token's.
  const bool own_rows = between.input.find(".experts.") != std::string::npos;
  const Hook correct{{between.output}, [=, rows = std::move(changes)](const HookValue& v) {
                       for (int64_t i = 0; i < v.shape[0]; i++) {
                         const int64_t from = v.tokens != nullptr && !own_rows ? v.tokens[i] : i;
                         const float* x = inputs->values.data() + from * inputs->width;
                         for (const RowChange& change : rows) {
                           double sum = 0;
                           for (size_t j = 0; j < change.delta.size(); j++)
                             sum += static_cast<double>(change.delta[j]) * static_cast<double>(x[j]);
                           v.data[i * v.strides[0] + change.row] += static_cast<float>(sum);
                         }
                       }
                       applied(v.shape[0]);
                     }};
  return {remember, correct};
}

}  // namespace

std::vector<Hook> weight_hooks(Engine& engine, const Edit& edit, const std::vector<int>& prompt,
                               int n_generated, std::function<void(int64_t)> applied) {
  if (edit.row_action > EditAction::scale)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: a row can be set, added to or scaled", edit.at));
  std::vector<RowChange> changes = row_changes(edit, engine.weight(edit.at));
  const ModelConfig& config = engine.config();
  if (edit.at != "embed.weight")
    return product_hooks(points_of(config, edit.at), std::move(changes), std::move(applied));
  if (n_generated > 0 || config.is_encoder_decoder())
    unsupported(edit.at, "a hook does not learn which tokens are generated");
  const auto scale = static_cast<float>(config.embedding_scale);
  return {{{"embed"}, [=, rows = std::move(changes)](const HookValue& v) {
             for (int64_t i = 0; i < v.shape[0]; i++)
               for (const RowChange& change : rows) {
                 if (prompt[static_cast<size_t>(v.first_position + i)] != change.row) continue;
                 for (size_t j = 0; j < change.delta.size(); j++)
                   v.data[i * v.strides[0] + static_cast<int64_t>(j)] += scale * change.delta[j];
                 applied(1);
               }
           }}};
}

}  // namespace liuli
