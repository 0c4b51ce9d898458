#include "convert/type_mix.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "liuli/error.h"

namespace liuli {

namespace {

using U = TensorUse;
using W = MixWhen;
using D = DType;
using Rules = std::vector<MixRule>;

/// Mixes of 2 bits and less share one list; the larger ones spend IQ3_S where the smaller spend `low` and `out`.
Rules two_bit_rules(D low, D out, D embedding) {
  return {{U::output, W::always, D::q5_k},
          {U::embedding, W::always, embedding},
          {U::attn_v, W::shared_or_experts, D::q4_k},
          {U::attn_v, W::always, low},
          {U::attn_k, W::eight_experts, D::q4_k},
          {U::ffn_down, W::first_eighth, low},
          {U::attn_output, W::eight_experts, D::q5_k},
          {U::attn_output, W::always, out}};
}

/// Eight experts: v and k in 8 bits cost about 128 MB of Mixtral's 26 GB.
Rules with_eight_experts(Rules rules, bool wide_output) {
  rules.insert(rules.begin(),
               {{U::attn_v, W::eight_experts, D::q8_0}, {U::attn_k, W::eight_experts, D::q8_0}});
  if (wide_output) rules.insert(rules.begin(), {U::attn_output, W::eight_experts, D::q5_k});
  return rules;
}

std::vector<TypeMix> three_bit_mixes() {
  return {{"iq3_xxs", 23, D::iq3_xxs,
           with_eight_experts({{U::embedding, W::always, D::iq3_s},
                               {U::attn_v, W::shared_heads, D::q4_k},
                               {U::attn_v, W::unweighted, D::iq3_s},
                               {U::attn_k, W::always, D::iq2_s},
                               {U::attn_q, W::always, D::iq2_s},
                               {U::ffn_down, W::eighth_unweighted, D::q4_k},
                               {U::ffn_down, W::unweighted, D::q3_k},
                               {U::output, W::always, D::q5_k},
                               {U::attn_output, W::always, D::iq3_s}},
                              true)},
          {"iq3_xs", 22, D::iq3_s,
           with_eight_experts({{U::attn_v, W::shared_heads, D::q4_k},
                               {U::attn_k, W::always, D::iq3_xxs},
                               {U::attn_q, W::always, D::iq3_xxs},
                               {U::ffn_gate, W::middle, D::iq3_xxs},
                               {U::ffn_up, W::middle, D::iq3_xxs}},
                              true)},
          {"iq3_s", 26, D::iq3_s, with_eight_experts({{U::attn_v, W::shared_heads, D::q4_k}}, true)},
          {"iq3_m", 27, D::iq3_s,
           with_eight_experts({{U::attn_v, W::always, D::q4_k},
                               {U::ffn_down, W::first_eighth, D::q4_k},
                               {U::attn_output, W::always, D::q4_k}},
                              true)},
          {"q3_k_s", 11, D::q3_k, with_eight_experts({}, true)},
          {"q3_k_m", 12, D::q3_k,
           with_eight_experts({{U::attn_v, W::first_two, D::q5_k},
                               {U::attn_v, W::always, D::q4_k},
                               {U::ffn_down, W::first_sixteenth, D::q5_k},
                               {U::ffn_down, W::always, D::q4_k},
                               {U::attn_output, W::always, D::q4_k}},
                              true)},
          {"q3_k_l", 13, D::q3_k,
           with_eight_experts({{U::attn_v, W::always, D::q5_k},
                               {U::ffn_down, W::always, D::q5_k},
                               {U::attn_output, W::always, D::q5_k}},
                              false)}};
}

std::vector<TypeMix> two_bit_mixes() {
  return {{"iq1_s", 24, D::iq1_s, two_bit_rules(D::q2_k, D::iq2_xxs, D::q2_k)},
          {"iq1_m", 31, D::iq1_m, two_bit_rules(D::q2_k, D::iq2_xxs, D::q2_k)},
          {"iq2_xxs", 19, D::iq2_xxs, two_bit_rules(D::q2_k, D::iq2_xxs, D::q2_k)},
          {"iq2_xs", 20, D::iq2_xs, two_bit_rules(D::q2_k, D::iq2_xs, D::q2_k)},
          {"iq2_s", 28, D::iq2_xs, two_bit_rules(D::iq3_s, D::iq3_s, D::iq3_s)},
          {"iq2_m", 29, D::iq2_s, two_bit_rules(D::iq3_s, D::iq3_s, D::iq3_s)},
          {"q2_k", 10, D::q2_k,
           with_eight_experts({{U::attn_v, W::shared_heads, D::q4_k},
                               {U::attn_v, W::always, D::q3_k},
                               {U::ffn_down, W::always, D::q3_k},
                               {U::attn_output, W::always, D::q3_k}},
                              true)},
          {"q2_k_s", 21, D::q2_k,
           with_eight_experts(
               {{U::attn_v, W::shared_heads, D::q4_k}, {U::ffn_down, W::first_eighth, D::q4_k}}, false)},
          {"tq1_0", 36, D::tq1_0, with_eight_experts({{U::embedding, W::always, D::q4_k}}, false)},
          {"tq2_0", 37, D::tq2_0, with_eight_experts({{U::embedding, W::always, D::q4_k}}, false)}};
}

std::vector<TypeMix> four_bit_mixes() {
  const Rules iq4 = with_eight_experts(
      {{U::attn_v, W::shared_heads, D::q5_k}, {U::ffn_down, W::eighth_unweighted, D::q5_k}}, true);
  return {
      {"iq4_xs", 30, D::iq4_xs, iq4},
      {"iq4_nl", 25, D::iq4_nl, iq4},
      {"q4_0", 2, D::q4_0, with_eight_experts({}, false)},
      {"q4_1", 3, D::q4_1, with_eight_experts({}, false)},
      {"q4_k_s", 14, D::q4_k,
       with_eight_experts({{U::attn_v, W::first_four, D::q5_k}, {U::ffn_down, W::first_eighth, D::q5_k}},
                          true)},
      {"q4_k_m", 15, D::q4_k,
       with_eight_experts({{U::attn_v, W::more_bits, D::q6_k}, {U::ffn_down, W::more_bits, D::q6_k}}, true)},
      {"mxfp4_moe",
       38,
       D::q8_0,
       {{U::output, W::always, D::q8_0},
        {U::ffn_gate, W::expert_stack, D::mxfp4},
        {U::ffn_up, W::expert_stack, D::mxfp4},
        {U::ffn_down, W::expert_stack, D::mxfp4}}}};
}

std::vector<TypeMix> wide_mixes() {
  return {
      {"q5_0", 8, D::q5_0, with_eight_experts({}, false)},
      {"q5_1", 9, D::q5_1, with_eight_experts({}, false)},
      {"q5_k_s", 16, D::q5_k, with_eight_experts({}, false)},
      {"q5_k_m", 17, D::q5_k,
       with_eight_experts({{U::attn_v, W::more_bits, D::q6_k}, {U::ffn_down, W::more_bits, D::q6_k}}, false)},
      {"q6_k", 18, D::q6_k, with_eight_experts({}, false)},
      {"q8_0", 7, D::q8_0, {}},
      {"f16", 1, D::f16, {}},
      {"bf16", 32, D::bf16, {}},
      {"f32", 0, D::f32, {}}};
}

bool plain(D type) { return dtype_info(type).block == 1; }

/// The layer of "blk.17.…", or −1.
int64_t layer_of(std::string_view name) {
  int64_t layer = -1;
  if (name.starts_with("blk.")) std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  return layer;
}

bool holds(MixWhen when, int64_t layer, size_t dimensions, const MixModel& m) {
  const int64_t n = m.n_layers;
  switch (when) {
    case W::always:
      return true;
    case W::first_two:
      return layer < 2;
    case W::first_four:
      return layer < 4;
    case W::first_eighth:
      return layer < n / 8;
    case W::first_sixteenth:
      return layer < n / 16;
    case W::more_bits:
      return layer < n / 8 || layer >= 7 * n / 8 || (layer - n / 8) % 3 == 2;
    case W::middle:
      return layer >= n / 8 && layer < 7 * n / 8;
    case W::shared_heads:
      return m.heads_per_kv_head >= 4;
    case W::shared_or_experts:
      return m.heads_per_kv_head >= 4 || m.n_experts >= 4;
    case W::eight_experts:
      return m.n_experts == 8;
    case W::expert_stack:
      return dimensions == 3;
    case W::eighth_unweighted:
      return !m.importance && layer < n / 8;
    case W::unweighted:
      return !m.importance;
  }
  return false;
}

D smaller_block(D type) {
  switch (type) {
    case D::q4_k:
      return D::q5_0;
    case D::q5_k:
      return D::q5_1;
    case D::q6_k:
      return D::q8_0;
    case D::q2_k:
    case D::q3_k:
    case D::tq1_0:
    case D::tq2_0:
      return D::q4_0;
    default:
      return dtype_info(type).block > 32 ? D::iq4_nl : type;
  }
}

}  // namespace

DType fitting_type(DType type, int64_t row) {
  if (row % dtype_info(type).block == 0) return type;
  const D smaller = smaller_block(type);
  return row % dtype_info(smaller).block == 0 ? smaller : D::f16;
}

TensorUse tensor_use(std::string_view name, const std::vector<int64_t>& shape) {
  static constexpr std::pair<std::string_view, TensorUse> kNames[] = {
      {"_norm.weight", U::kept}, {"ffn_gate_inp.weight", U::kept}, {"position_embd.", U::kept},
      {"token_types.", U::kept}, {"token_embd.", U::embedding},    {"attn_qkv.", U::attn_v},
      {"attn_kv_b.", U::attn_v}, {"attn_v.", U::attn_v},           {"attn_k.", U::attn_k},
      {"attn_q.", U::attn_q},    {"attn_output.", U::attn_output}, {"ffn_up", U::ffn_up},
      {"ffn_gate", U::ffn_gate}, {"ffn_down", U::ffn_down}};
  if (shape.size() < 2 || !name.ends_with(".weight")) return U::kept;
  if (name == "output.weight") return U::output;
  for (const auto& [part, use] : kNames)
    if (name.find(part) != name.npos) return use;
  return U::other;
}

DType TypeMix::type_of(std::string_view tensor, const std::vector<int64_t>& shape,
                       const MixModel& model) const {
  TensorUse use = tensor_use(tensor, shape);
  if (use == U::kept) return D::f32;
  if (plain(base)) return base;
  if (use == U::embedding && model.tied_embeddings) use = U::output;
  // The output matrix decides everything: 6 bits unless the mix says otherwise, 8 where the rows do not fit.
  if (use == U::output && shape.back() % dtype_info(base).block != 0)
    return fitting_type(D::q8_0, shape.back());
  DType type = use == U::output && base != D::q8_0 ? D::q6_k : base;
  const int64_t layer = layer_of(tensor);
  const auto rule = std::find_if(rules.begin(), rules.end(), [&](const MixRule& r) {
    return r.use == use && holds(r.when, layer, shape.size(), model);
  });
  if (rule != rules.end()) type = rule->type;
  // The 70B shape: 80 layers, eight heads on one v, which is so small that a bit more is almost free.
  if (use == U::attn_v && model.n_layers == 80 && model.heads_per_kv_head > 1 &&
      (type == D::q3_k || type == D::q4_k))
    type = D::q5_k;
  return fitting_type(type, shape.back());
}

const std::vector<TypeMix>& type_mixes() {
  static const std::vector<TypeMix> kMixes = [] {
    std::vector<TypeMix> all;
    for (auto part : {two_bit_mixes(), three_bit_mixes(), four_bit_mixes(), wide_mixes()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return kMixes;
}

const TypeMix* find_type_mix(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const TypeMix& mix : type_mixes())
    if (lower == mix.name) return &mix;
  return nullptr;
}

TypeMix require_type_mix(std::string_view name) {
  if (const TypeMix* mix = find_type_mix(name)) return *mix;
  const std::optional<DType> type = dtype_from_name(name);
  if (type && !plain(*type)) {
    // The file's type is that of a mix with the same base: the number is informational.
    const auto same = std::find_if(type_mixes().begin(), type_mixes().end(),
                                   [&](const auto& m) { return m.base == *type; });
    return {dtype_info(*type).name,
            same == type_mixes().end() ? 0 : same->file_type,
            *type,
            {{U::output, W::always, *type}}};
  }
  std::string names;
  for (const TypeMix& mix : type_mixes()) names.append(" ").append(mix.name);
  throw Error(ErrorCode::not_found, fmt::format("no stored type \"{}\" is known; mixes are{}", name, names));
}

}  // namespace liuli
