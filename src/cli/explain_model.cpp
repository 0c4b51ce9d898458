#include "cli/explain_model.h"
#include "cli/program.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/text_table.h"
#include "liuli/model_file.h"

namespace liuli::cli {
namespace {

// A loaded model, the tokens run through it, and the place in range.
struct Run {
  Engine engine;
  std::string path;
  std::vector<int> ids;
  int layer, token;
};

int token_position(int token, size_t n_tokens) {
  const int n = static_cast<int>(n_tokens);
  const int position = token < 0 ? n + token : token;
  if (position >= 0 && position < n) return position;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--token {}: the prompt has {} tokens (0 … {}, or −1 from the "
                          "end)",
                          token, n, n - 1));
}

Run start_run(const RunPlace& place) {
  Engine engine = load_engine(place.model);
  const int64_t n_layers = engine.config().n_layers;
  if (place.layer >= n_layers) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--layer {}: the model has layers 0 … {}", place.layer, n_layers - 1));
  }
  std::vector<int> ids = read_tokens(place.tokens, engine);
  const int token = token_position(place.token, ids.size());
  return {std::move(engine), resolve_model(place.model.model), std::move(ids), place.layer, token};
}

const TracedTensor& find(const std::vector<TracedTensor>& traced, const std::string& name) {
  const auto found =
      std::find_if(traced.begin(), traced.end(), [&](const auto& t) { return t.name == name; });
  if (found == traced.end()) throw Error(ErrorCode::unsupported, "this model has no value at " + name);
  return *found;
}

// values [n_tokens, …]: the part that belongs to one index of the first axis and, for heads, one of the
// second.
std::vector<double> part(const TracedTensor& tensor, int64_t i) {
  const int64_t size = static_cast<int64_t>(tensor.values.size()) / tensor.shape.at(0);
  const auto begin = tensor.values.begin() + i * size;
  return {begin, begin + size};
}

std::vector<double> part(const TracedTensor& tensor, int64_t i, int64_t j) {
  const int64_t size = static_cast<int64_t>(tensor.values.size()) / (tensor.shape.at(0) * tensor.shape.at(1));
  const auto begin = tensor.values.begin() + (i * tensor.shape[1] + j) * size;
  return {begin, begin + size};
}

std::string token_name(const Run& run, int position) {
  return visible(run.engine.token_text(run.ids[static_cast<size_t>(position)]));
}

std::string subject(const Run& run, const std::string& point) {
  return fmt::format("{} {}, token {} “{}”", run.engine.config().name, point, run.token,
                     token_name(run, run.token));
}

// Where a norm stands: the points before and after it and the tensors with its parameters.
struct NormSite {
  std::string input, output, tensor;
  NormKind kind = NormKind::none;
};

NormSite norm_site(const std::string& site, const Run& run) {
  const ModelConfig& config = run.engine.config();
  const std::string block = fmt::format("blocks.{}.", run.layer);
  if (site == "ln_final") {
    return {fmt::format("blocks.{}.resid_post", config.n_layers - 1), "ln_final.out", "output_norm",
            config.final_norm};
  }
  const LayerPlan& plan = config.layers.at(static_cast<size_t>(run.layer));
  const bool first = site == "ln1";
  return {block + (first ? "resid_pre" : "resid_mid"), block + site + ".out",
          fmt::format("blk.{}.{}", run.layer, first ? "attn_norm" : "ffn_norm"),
          first ? plan.attn_norm.before : plan.ffn_norm.before};
}

std::vector<double> decoded(const std::string& path, const std::string& tensor) {
  const DecodedTensor values = decode_tensor(path, tensor);
  return {values.values.begin(), values.values.end()};
}

}  // namespace

void add_run_place(CLI::App& command, RunPlace& place) {
  const char* group = "From a model's run";
  command.add_option("--model", place.model.model, "take the numbers from this model's run")
      ->type_name("MODEL")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--ids",
          [&place](const std::string& text) { place.tokens.ids = text, place.tokens.has_ids = true; },
          "token ids: 1,2,3")
      ->type_name("IDS")
      ->group(group);
  command
      .add_option_function<std::string>(
          "--prompt",
          [&place](const std::string& text) { place.tokens.prompt = text, place.tokens.has_prompt = true; },
          "text; one user turn of the chat template unless --raw")
      ->type_name("TEXT")
      ->group(group);
  command.add_flag("--raw", place.tokens.raw, "the prompt without the chat template")->group(group);
  command.add_option("--layer", place.layer, "block, from 0")
      ->check(quiet(CLI::NonNegativeNumber))
      ->capture_default_str()
      ->group(group);
  command.add_option("--token", place.token, "position in the prompt; -1: the last")
      ->capture_default_str()
      ->group(group);
  add_load_options(command, place.model);
}

NormInputs norm_inputs(const RunPlace& place) {
  Run run = start_run(place);
  const NormSite site = norm_site(place.site, run);
  if (site.kind == NormKind::none) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: block {} has no norm at {}", place.model.model, run.layer, place.site));
  }
  const auto traced = run.engine.trace(run.ids, {site.input, site.output});
  NormInputs inputs;
  inputs.kind = site.kind;
  inputs.row = part(find(traced, site.input), run.token);
  inputs.observed = part(find(traced, site.output), run.token);
  inputs.gamma = decoded(run.path, site.tensor + ".weight");
  if (site.kind == NormKind::layer) inputs.beta = decoded(run.path, site.tensor + ".bias");
  inputs.eps = run.engine.config().norm_eps;
  inputs.subject = subject(run, site.output.substr(0, site.output.size() - 4));
  return inputs;
}

ScoreInputs score_inputs(const RunPlace& place) {
  Run run = start_run(place);
  const ModelConfig& config = run.engine.config();
  if (place.head >= config.n_heads) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--head {}: the model has heads 0 … {}", place.head, config.n_heads - 1));
  }
  const std::string attention = fmt::format("blocks.{}.attn.", run.layer);
  const auto traced =
      run.engine.trace(run.ids, {attention + "rot_q", attention + "rot_k", attention + "pattern"});
  const TracedTensor& keys = find(traced, attention + "rot_k");
  const int64_t kv_head = place.head / (config.n_heads / config.n_kv_heads);
  ScoreInputs inputs;
  inputs.q = part(find(traced, attention + "rot_q"), run.token, place.head);
  inputs.observed = part(find(traced, attention + "pattern"), place.head, run.token);
  for (size_t j = 0; j < run.ids.size(); ++j) {
    inputs.keys.push_back(part(keys, static_cast<int64_t>(j), kv_head));
    inputs.labels.push_back(token_name(run, static_cast<int>(j)));
  }
  inputs.scale = config.attention_scale;
  inputs.soft_cap = config.attention_soft_cap;
  if (config.causal) inputs.query_position = run.token;
  inputs.window = config.layers.at(static_cast<size_t>(run.layer)).sliding_window;
  inputs.subject = subject(run, fmt::format("{}head {}", attention, place.head));
  return inputs;
}

ResidualInputs residual_inputs(const RunPlace& place) {
  Run run = start_run(place);
  const std::string block = fmt::format("blocks.{}.", run.layer);
  const bool attention = place.site == "attn";
  ResidualInputs inputs;
  inputs.x_name = attention ? "resid_pre" : "resid_mid";
  inputs.added_name = attention ? "attn_out" : "mlp_out";
  inputs.sum_name = attention ? "resid_mid" : "resid_post";
  const auto traced =
      run.engine.trace(run.ids, {block + inputs.x_name, block + inputs.added_name, block + inputs.sum_name});
  inputs.x = part(find(traced, block + inputs.x_name), run.token);
  inputs.added = part(find(traced, block + inputs.added_name), run.token);
  inputs.observed = part(find(traced, block + inputs.sum_name), run.token);
  inputs.subject = subject(run, block + inputs.sum_name);
  return inputs;
}

}  // namespace liuli::cli
