// What an Engine is made of.
#pragma once
#include <memory>
#include <optional>

#include "engine/embedding_defaults.h"
#include "generate/sequence.h"
#include "liuli/engine.h"
#include "tokenizers/chat_template.h"
#include "tokenizers/tokenizer.h"

namespace liuli {

struct EngineParts {
  std::string path;
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<int> end_tokens;
  std::optional<ChatTemplate> chat_template;
  std::string chat_template_problem;  ///< why there is none, for the error when one is asked for
  std::unique_ptr<Model> model;       ///< null when only the tokenizer was loaded
  std::unique_ptr<Runner> runner;
  RunClasses classes;
  GenerationDefaults generation_defaults;
  EmbeddingDefaults embedding;

  /// Errors: invalid_argument for a token outside the model's vocabulary; out_of_memory beyond `context`
  /// tokens.
  void check_tokens(std::span<const int> ids, int64_t already, int64_t context) const;
  /// Errors: unsupported for a model that gives hidden states only; `work` is what was wanted ("text generation").
  void require_logits(const char* work) const;
  /// Errors: invalid_argument for a source or token types that the model does not take, or lacks.
  void check_beside(const BesideTheTokens& beside, size_t n_tokens) const;
};

/// The tokenizer, its end tokens, the chat template and the sampling defaults of a model. template_name: "" the file's own, else a
/// built-in one.
void load_text_parts(EngineParts& parts, const WeightSource& source, const std::string& template_name);
/// The classes a choice means for this model.
RunClasses run_classes(const LoadSettings& settings, const WeightSource& source);

}  // namespace liuli
