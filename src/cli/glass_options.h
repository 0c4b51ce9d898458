// What the commands that look into a run share: a model, a prompt, and words for tokens.
#pragma once
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/model_options.h"
#include "cli/token_input.h"

namespace liuli::cli {

struct Program;

/// A model and a prompt to run it on.
struct GlassOptions {
  ModelOptions model;
  TokenInput tokens;
  std::string output;  ///< a file to write arrays to; "": none
};

/// MODEL, --threads, --class, --exact, the prompt's options and --json.
void add_glass_options(CLI::App& command, GlassOptions& options, Program& program);
/// -o, for .safetensors, .npz and .npy.
void add_array_output(CLI::App& command, std::string& output, const char* what);

/// The one token that a text is, or "id:1234". Errors: invalid_argument, naming the tokens it falls into.
int one_token(const Engine& engine, const std::string& text);

/// "5 ␣Paris": a position and its token.
std::string position_label(const Engine& engine, const std::vector<int>& ids, int position);
/// The token alone, visible.
std::string token_label(const Engine& engine, int id, int max_width = 16);

/// Named f32 arrays of one shape each, as one file whose kind follows its name; .npy takes the first one alone.
struct NamedArray {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};
void write_arrays(const std::string& path, const std::vector<NamedArray>& arrays,
                  const std::map<std::string, std::string>& metadata);

}  // namespace liuli::cli
