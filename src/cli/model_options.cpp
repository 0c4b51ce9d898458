#include "cli/model_options.h"
#include "cli/program.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/text_table.h"

namespace liuli::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Where fetched models lie: $LIULI_CACHE, else the user's cache folder.
std::string cache_folder() {
  if (const std::string own = environment("LIULI_CACHE"); !own.empty()) return own;
  if (const std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/liuli";
  return environment("HOME") + "/.cache/liuli";
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool may_be_short_name(const std::string& model) {
  return !model.empty() && model.find('/') == std::string::npos && !model.ends_with(".gguf") &&
         !model.ends_with(".safetensors");
}

std::vector<std::string> places_of(const std::string& name) {
  std::vector<std::string> places;
  if (const std::string folder = environment("LIULI_MODELS"); !folder.empty()) {
    places.push_back(folder + "/" + name + ".gguf");
    places.push_back(folder + "/" + name);
  }
  places.push_back(cache_folder() + "/models/" + name + ".gguf");
  places.push_back(cache_folder() + "/models/" + name);
  return places;
}

ProductClassChoice product_class(const std::string& name) {
  if (name == "prompt") return ProductClassChoice::prompt;
  if (name == "decode") return ProductClassChoice::decode;
  if (name == "f32") return ProductClassChoice::f32;
  return ProductClassChoice::automatic;
}

}  // namespace

CLI::Option* add_model_argument(CLI::App& command, std::string& model) {
  return command.add_option("MODEL", model,
                            "model file, or a short name found in $LIULI_MODELS or the cache");
}

void add_load_options(CLI::App& command, ModelOptions& options) {
  command.add_option("--threads", options.settings.threads, "threads; 0: every CPU this process may use")
      ->check(quiet(CLI::Range(0, 4096)))
      ->capture_default_str();
  command
      .add_option(
          "--class", options.product_class,
          "how matrix products round: prompt (bf16), decode (16-bit integers), f32; auto: prompt for the "
          "prompt, decode for generated tokens, f32 for a file of F32 matrices")
      ->check(quiet(CLI::IsMember({"auto", "prompt", "decode", "f32"})))
      ->capture_default_str();
  add_prompt_products_option(command, options.prompt_products);
  add_cache_type_option(command, options.cache_type);
  command
      .add_option("--panels", options.settings.panels,
                  "a file that `liuli pack` wrote, mapped in place of packing the weights; none: pack them; "
                  "default: MODEL.panels if it is there and of this model")
      ->type_name("FILE");
  command.add_flag("--exact", options.settings.exact,
                   "the second opinion: scalar loops, sums in double; slow and as exact as the file");
}

CLI::Option* add_prompt_products_option(CLI::App& command, std::string& products) {
  return command
      .add_option(
          "--prompt-products", products,
          "what prompts multiply quantised weights by: bf16, or int8: 8-bit activations with a scale per "
          "32, coarser, and faster where there is no matrix unit (AMX)")
      ->check(quiet(CLI::IsMember({"bf16", "int8"})))
      ->capture_default_str();
}

CLI::Option* add_cache_type_option(CLI::App& command, std::string& type) {
  return command
      .add_option("--cache-type", type,
                  "how keys and values are kept: f32, f16, bf16, q8_0, q4_0; auto: f16 for a file of F16 "
                  "matrices, f32 in the f32 class, else bf16")
      ->check(quiet(CLI::IsMember({"auto", "f32", "f16", "bf16", "q8_0", "q4_0"})))
      ->capture_default_str();
}

void add_chat_template_option(CLI::App& command, std::string& chat_template) {
  command
      .add_option("--chat-template", chat_template,
                  "use this template: chatml, llama3, gemma, plain; default: the file's own")
      ->type_name("NAME");
}

std::string resolve_model(const std::string& model) {
  if (exists(model) || !may_be_short_name(model)) return model;
  const std::vector<std::string> places = places_of(model);
  for (const std::string& place : places) {
    if (exists(place)) return place;
  }
  throw Error(ErrorCode::not_found, fmt::format("no model file '{}'; also looked for the short name at {}",
                                                model, joined(places, ", ")));
}

std::string resolve_data(const std::string& file) {
  const std::string cached = cache_folder() + "/data/" + file;
  return !exists(file) && exists(cached) ? cached : file;
}

Engine load_engine(const ModelOptions& options) {
  LoadSettings settings = options.settings;
  settings.product_class = product_class(options.product_class);
  settings.cache_type = cache_type_named(options.cache_type);
  settings.prompt_products = prompt_products_named(options.prompt_products);
  Progress progress("loading", ProgressUnit::bytes);
  settings.on_progress = [&progress](int64_t done, int64_t total) {
    throw_if_interrupted();
    progress.update(done, total);
  };
  Engine engine = Engine::load(resolve_model(options.model), settings);
  progress.clear();
  for (const std::string& notice : engine.notices()) fmt::print(stderr, "liuli: {}\n", notice);
  return engine;
}

}  // namespace liuli::cli
