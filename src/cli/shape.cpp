// liuli shape: how large a model is, without its weights.
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "cli/model_options.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "liuli/error.h"
#include "liuli/shape.h"

namespace liuli::cli {
namespace {

struct ShapeOptions {
  std::string name;
  int64_t context = 0;
  std::string cache_type = "auto";
  bool list = false;
};

std::string grouped(int64_t n) {
  std::string digits = fmt::format("{}", n);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string flops_text(double flops) {
  if (flops >= 1e9) return fmt::format("{:.4g} GFLOP", flops / 1e9);
  return fmt::format("{:.4g} MFLOP", flops / 1e6);
}

void print_sizes(const ModelShape& s) {
  fmt::print("{}\n", s.title);
  const std::string encoder =
      s.n_encoder_layers > 0 ? fmt::format(" in the decoder, {} in the encoder", s.n_encoder_layers) : "";
  fmt::print("  blocks      {}{}\n", s.n_layers, encoder);
  fmt::print("  width       {} (feed-forward {}, vocabulary {})\n", s.d_model, s.d_ff, grouped(s.vocab_size));
  fmt::print("  heads       {} × {}, keys and values of {}\n", s.n_heads, s.head_dim, s.n_kv_heads);
  if (s.n_experts > 0)
    fmt::print("  experts     {} of {} per token, inner width {}; the first {} blocks are dense\n",
               s.n_experts_active, s.n_experts, s.expert_d_ff, s.n_dense_layers);
  fmt::print("  context     {} tokens\n", grouped(s.trained_context));
  fmt::print("  parameters  {} ({})\n", count_text(s.parameters), grouped(s.parameters));
  if (s.active_parameters < s.parameters)
    fmt::print("  active      {} ({}) per token\n", count_text(s.active_parameters),
               grouped(s.active_parameters));
  fmt::print("\n");
}

void print_parts(const ModelShape& s) {
  const bool experts = s.active_parameters < s.parameters;
  std::vector<TextTable::Column> columns = {{"part"}, {"parameters", Align::right}, {"share", Align::right}};
  if (experts) columns.push_back({"active per token", Align::right});
  TextTable table(std::move(columns));
  const auto add = [&](const std::string& name, int64_t parameters, int64_t active) {
    std::vector<std::string> cells = {
        name, grouped(parameters),
        fmt::format("{:.1f} %", 100 * static_cast<double>(parameters) / static_cast<double>(s.parameters))};
    if (experts) cells.push_back(grouped(active));
    table.add_row(std::move(cells));
  };
  for (const ShapePart& part : s.parts) add(part.name, part.parameters, part.active);
  add("total", s.parameters, s.active_parameters);
  fmt::print("{}{}\n", table.render(), s.tied_embeddings ? "The embedding is the output matrix too.\n" : "");
}

void print_bytes(const ModelShape& s) {
  TextTable table({{"stored as"}, {"size", Align::right}, {"bits per parameter", Align::right}});
  for (const ShapeBytes& row : s.bytes)
    table.add_row({row.type, size_text(row.bytes), fmt::format("{:.2f}", row.bits)});
  fmt::print("{}\n", table.render());
}

void print_cache(const ModelShape& s) {
  if (s.cache_plain == 0) return;
  const bool usual = s.cache_type == CacheType::automatic;
  const std::string type = usual ? "16 bits" : to_string(s.cache_type);
  TextTable table({{"cache, " + type}, {"bytes per token", Align::right}, {"how"}});
  table.add_row({"plain", grouped(s.cache_plain), "k and v of every query head"});
  if (s.cache_grouped > 0)
    table.add_row({"grouped", grouped(s.cache_grouped), fmt::format("k and v of {} heads", s.n_kv_heads)});
  if (s.cache_latent > 0)
    table.add_row({"latent", grouped(s.cache_latent), "one latent and one rotated key per block"});
  fmt::print("{}at {} tokens: {}", table.render(), grouped(s.context), size_text(s.cache_bytes));
  if (s.cache_bytes_windowed < s.cache_bytes)
    fmt::print(", {} if windowed blocks keep their window only", size_text(s.cache_bytes_windowed));
  fmt::print("\n\n");
}

void print_arithmetic(const ModelShape& s) {
  fmt::print("arithmetic per token\n");
  fmt::print("  products    {}  (2 per weight that multiplies)\n", flops_text(s.product_flops));
  fmt::print("  attention   {} per visible key\n", flops_text(s.attention_flops));
  if (s.attention_flops_latent > 0)
    fmt::print("              {} on the latents themselves\n", flops_text(s.attention_flops_latent));
  fmt::print("  together    {} with {} keys\n", flops_text(s.flops_at_context), grouped(s.context));
}

nlohmann::ordered_json to_json(const ModelShape& s) {
  auto parts = nlohmann::ordered_json::array(), bytes = nlohmann::ordered_json::array();
  for (const ShapePart& p : s.parts)
    parts.push_back({{"name", p.name}, {"parameters", p.parameters}, {"active", p.active}});
  for (const ShapeBytes& b : s.bytes)
    bytes.push_back({{"type", b.type}, {"bytes", b.bytes}, {"bits", b.bits}});
  return {{"name", s.name},
          {"title", s.title},
          {"architecture", s.architecture},
          {"vocab_size", s.vocab_size},
          {"d_model", s.d_model},
          {"d_ff", s.d_ff},
          {"n_layers", s.n_layers},
          {"n_encoder_layers", s.n_encoder_layers},
          {"n_heads", s.n_heads},
          {"n_kv_heads", s.n_kv_heads},
          {"head_dim", s.head_dim},
          {"trained_context", s.trained_context},
          {"n_experts", s.n_experts},
          {"n_experts_active", s.n_experts_active},
          {"expert_d_ff", s.expert_d_ff},
          {"n_dense_layers", s.n_dense_layers},
          {"tied_embeddings", s.tied_embeddings},
          {"parameters", s.parameters},
          {"active_parameters", s.active_parameters},
          {"parts", std::move(parts)},
          {"bytes", std::move(bytes)},
          {"cache_type", to_string(s.cache_type)},
          {"cache_bytes_per_token",
           {{"plain", s.cache_plain}, {"grouped", s.cache_grouped}, {"latent", s.cache_latent}}},
          {"context", s.context},
          {"cache_bytes", s.cache_bytes},
          {"cache_bytes_windowed", s.cache_bytes_windowed},
          {"product_flops", s.product_flops},
          {"attention_flops_per_key", s.attention_flops},
          {"attention_flops_per_key_latent", s.attention_flops_latent},
          {"flops_at_context", s.flops_at_context}};
}

int list_models(bool json) {
  const std::vector<std::string> names = known_model_names();
  if (json) {
    fmt::print("{}\n", json_text(nlohmann::ordered_json(names)));
    return 0;
  }
  TextTable table({{"name"}, {"model"}, {"blocks", Align::right}, {"parameters", Align::right}});
  for (const std::string& name : names) {
    const ModelShape s = shape_of_known_model(name);
    table.add_row({name, s.title, fmt::format("{}", s.n_layers), count_text(s.parameters)});
  }
  fmt::print("{}", table.render());
  return 0;
}

/// A built-in name wins: files are named with a path or an ending.
ModelShape find_shape(const ShapeOptions& options) {
  const CacheType cache = cache_type_named(options.cache_type);
  for (const std::string& name : known_model_names())
    if (name == options.name) return shape_of_known_model(name, options.context, cache);
  if (std::filesystem::exists(options.name)) return shape_of_file(options.name, options.context, cache);
  std::string path;
  try {
    path = resolve_model(options.name);
  } catch (const Error&) {
    return shape_of_known_model(options.name, options.context, cache);  // names what is built in
  }
  return shape_of_file(path, options.context, cache);
}

int shape(const ShapeOptions& options, bool json) {
  if (options.list) return list_models(json);
  if (options.name.empty())
    throw Error(ErrorCode::invalid_argument,
                "name a built-in model or a file; --list prints the built-in ones");
  const ModelShape s = find_shape(options);
  if (json) {
    fmt::print("{}\n", json_text(to_json(s)));
    return 0;
  }
  print_sizes(s);
  print_parts(s);
  print_bytes(s);
  print_cache(s);
  print_arithmetic(s);
  return 0;
}

}  // namespace

void add_shape_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<ShapeOptions>();
  auto* command = app.add_subcommand("shape", "parameters by part, bytes, cache and arithmetic of a model");
  command->group("See inside");
  command->add_option("NAME", options->name,
                      "a built-in model (--list), a file, a folder, or a model's short name");
  command
      ->add_option("--context", options->context, "tokens to count cache and attention for (default: 4096)")
      ->check(quiet(CLI::PositiveNumber));
  add_cache_type_option(*command, options->cache_type)
      ->description("how keys and values are kept: f32, f16, bf16, q8_0, q4_0; auto: 16 bits");
  command->add_flag("--list", options->list, "the built-in models");
  add_json_flag(*command, program);
  command->footer(
      "Examples:\n"
      "  liuli shape llama-3-8b\n"
      "  liuli shape deepseek-v3 --context 32768\n"
      "  liuli shape smollm2.gguf");
  command->callback([options, &program] {
    program.action = [options, &program] { return shape(*options, program.json); };
  });
}

}  // namespace liuli::cli
