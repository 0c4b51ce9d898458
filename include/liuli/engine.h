// Load a model, turn text into tokens, run it, watch it. The command line uses this and nothing below it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "liuli/cache_type.h"
#include "liuli/config.h"
#include "liuli/embedding.h"
#include "liuli/error.h"
#include "liuli/generation.h"
#include "liuli/number_explanation.h"
#include "liuli/report.h"
#include "liuli/trace.h"
#include "liuli/weights.h"

namespace liuli {

/// How matrix products round. automatic: prompts in the prompt class and generated tokens in the decode
/// class, or everything in f32 when all of a file's matrices are F32.
enum class ProductClassChoice { automatic, prompt, decode, f32 };

/// What the prompt class multiplies quantised weights by. bf16: NMSE of a product ≤ 1e-5. int8: activations of 8 bits with
/// a scale per 32, NMSE ≤ 4e-5, faster where there is no matrix unit.
enum class PromptProducts { bf16, int8 };
const char* to_string(PromptProducts products);
/// Errors: invalid_argument (names what is known).
PromptProducts prompt_products_named(std::string_view name);

struct LoadSettings {
  int threads = 0;     ///< 0: every CPU this process may use
  bool exact = false;  ///< the second opinion: scalar reference, sums in double, weights stay mapped
  ProductClassChoice product_class = ProductClassChoice::automatic;
  /// Errors: invalid_argument for a type of 16 bits or fewer in the f32 class or an exact run.
  CacheType cache_type = CacheType::automatic;
  /// Errors: invalid_argument for int8 where prompts do not run in the prompt class, or no matrix has integer codes.
  PromptProducts prompt_products = PromptProducts::bf16;
  std::string chat_template;  ///< "" the file's own; or chatml, llama3, gemma, plain
  /// The weights as `liuli pack` wrote them, mapped instead of packed. "": MODEL.panels, if it is there and of this model;
  /// "none": packed in any case. Errors: as load(), and invalid_argument for a named file of another model or an exact run,
  /// which reads the model's own rows.
  std::string panels;
  std::function<void(int64_t done, int64_t total)> on_progress;  ///< bytes of weights; may throw to stop
};

/// A prompt rendered by a chat template.
struct ChatPrompt {
  std::string text;
  std::vector<int> ids;  ///< what came from the user is never matched as a control token
};

struct PerplexityResult {
  double perplexity = 0, mean_nll = 0, standard_error = 0;  ///< error of mean_nll
  int64_t predicted_tokens = 0;
};

class Session;
struct EngineParts;

/// A loaded model. Immutable; sessions run on it one at a time (they share its threads).
class Engine {
 public:
  /// Errors: not_found, io_error, corrupt_file, unsupported, out_of_memory, cancelled.
  static Engine load(const std::string& path, const LoadSettings& settings = {});
  /// Only the vocabulary and the chat template, for tokenize, detokenize, render_chat.
  static Engine load_tokenizer(const std::string& path, const std::string& chat_template = "");
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  const ModelConfig& config() const;
  /// What a user should know about what was loaded, a line each; usually nothing.
  std::vector<std::string> notices() const;
  int threads() const;

  // ---- text ----
  /// add_special: add what the vocabulary prescribes (BOS…); parse_special: control tokens in the text are
  /// recognised.
  std::vector<int> tokenize(std::string_view text, bool add_special = true, bool parse_special = false) const;
  std::string detokenize(const std::vector<int>& ids) const;
  std::string token_text(int id) const;  ///< bytes of one token, invalid ones as U+FFFD
  int vocab_size() const;                ///< of the tokenizer; the model's rows may be more (padding)
  bool is_end_token(int id) const;
  std::optional<int> bos_id() const;
  const GenerationDefaults& generation_defaults() const;  ///< a GGUF file states none

  bool has_chat_template() const;
  /// messages: [{"role": …, "content": …}], tools: array or null. Errors: unsupported (no template, or one
  /// Liuli cannot run), invalid_argument (the template refuses the messages).
  ChatPrompt render_chat(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& tools,
                         bool add_generation_prompt = true) const;

  // ---- numbers ----
  /// Logits of every position, in order: on_row(position, logits [vocab_size]). Errors: invalid_argument
  /// (ids, length, an encoder-decoder without a source), unsupported (a model that gives hidden states only).
  void logits(const std::vector<int>& ids, const std::function<void(int, std::span<const float>)>& on_row,
              int chunk = 512, const BesideTheTokens& beside = {}, const std::vector<Hook>& hooks = {});
  /// exp of the mean negative log-probability of each token after the first of each window of `context`
  /// tokens.
  PerplexityResult perplexity(const std::vector<int>& ids, int context = 512,
                              const std::function<void(int64_t, int64_t)>& on_progress = {},
                              const std::vector<Hook>& hooks = {});
  /// Values at named points for a prompt. Errors: not_found (no such point; names the nearest),
  /// invalid_argument.
  std::vector<TracedTensor> trace(const std::vector<int>& ids, const std::vector<std::string>& points,
                                  const TraceSettings& settings = {});
  /// Bytes such a trace would hold. Errors: not_found.
  int64_t trace_bytes(int64_t n_tokens, const std::vector<std::string>& points, int64_t n_source = 0,
                      const TraceSlices& slices = {}) const;
  /// What numbers of a prompt's run are made of: "blocks.3.attn.pattern[2,5,1]" (negative indices count from the end).
  /// Errors: not_found (no such point; names the nearest), invalid_argument (an index outside the shape; a token that does
  /// not go through the expert).
  std::vector<NumberExplanation> explain(const std::vector<int>& ids, const std::vector<std::string>& at,
                                         const ExplainNumberSettings& settings = {});
  /// Texts as vectors, in order. Errors: unsupported (a pooling Liuli does not know, an encoder-decoder),
  /// invalid_argument.
  std::vector<Embedding> embed(std::span<const std::string> texts, const EmbedSettings& settings = {});
  std::vector<Embedding> embed_ids(std::span<const std::vector<int>> texts,
                                   const EmbedSettings& settings = {});
  /// What `settings` come to with this model's own files. Errors: as embed().
  EmbedPlan embed_plan(const EmbedSettings& settings = {}) const;
  /// Every weight of the model, in the order a token meets them.
  std::vector<WeightInfo> weights() const;
  /// One of them, decoded. Errors: not_found (names its neighbours).
  WeightValues weight(const std::string& name) const;
  /// Which kernel and layout every weight uses, and the memory a context takes.
  ModelPlan plan(int context = 0) const;

  EngineParts& parts() const { return *parts_; }  ///< for the library's own use

 private:
  friend class Session;
  explicit Engine(std::unique_ptr<EngineParts> parts);
  std::unique_ptr<EngineParts> parts_;
};

/// One conversation: its tokens and their cache.
class Session {
 public:
  /// max_context 0: the model's own, cut to what memory allows on first use. Errors: invalid_argument; unsupported for a
  /// model that gives hidden states only.
  explicit Session(Engine& engine, int max_context = 0);
  ~Session();
  Session(Session&&) noexcept;

  /// Of an encoder-decoder: the text that every later token looks at. Forgets all tokens unless it is the source
  /// already. Errors: invalid_argument.
  void read_source(const std::vector<int>& source);

  /// Makes `prompt` the session's tokens (reusing the cache where its beginning agrees) and continues it.
  /// on_token sees each token as it comes; returning false stops.
  GenerateResult generate(const std::vector<int>& prompt, const GenerateSettings& settings,
                          const std::function<bool(const GeneratedToken&)>& on_token = {});

  /// Appends tokens; returns the logits after the last one, valid until the engine runs again. generated:
  /// decode class. chunk: tokens of a prompt per pass, which changes no bit; 0: as the plan says.
  std::span<const float> feed(std::span<const int> ids, bool generated = false, int chunk = 0);
  /// One token for each of several sessions of one engine, in one step; their logits in order.
  static std::vector<std::span<const float>> feed_together(std::span<Session* const> sessions,
                                                           std::span<const int> ids);

  const std::vector<int>& tokens() const;
  int max_context() const;
  void truncate(int n_tokens);  ///< forgets everything from position n_tokens on
  size_t cache_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A model's shape and choices, without its weights. Errors: as Engine::load.
ModelConfig read_config(const std::string& path);

/// The instruction set level in use ("avx512_bf16") and those this machine has. Errors: invalid_argument for
/// a bad LIULI_ISA.
std::string active_isa();
std::vector<std::string> available_isas();

}  // namespace liuli
