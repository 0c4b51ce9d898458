// Making model files smaller: block-quantised types, mixes of them, and importance matrices that guide the search.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace liuli {

class Engine;

/// The tensors whose name a regular expression (ECMAScript, found anywhere in the name) matches.
struct TensorTypeRule {
  std::string pattern, type;
};

struct QuantizeSettings {
  std::string type = "q4_k_m";  ///< a mix (list_quantize_types()) or a plain type
  std::vector<TensorTypeRule>
      tensor_types;  ///< stronger than everything below; the first that matches decides
  std::string output_type, embedding_type;  ///< of output.weight and token_embd.weight; "": as the mix says
  bool pure =
      false;  ///< the mix's main type for every matrix (where its block does not fit, the next smaller)
  std::string imatrix;  ///< an importance matrix file; "": every column counts the same
  bool no_tokenizer =
      false;        ///< of a folder: leave its tokenizer out (one that GGUF cannot express is refused)
  int threads = 0;  ///< 0: every CPU this process may use; changes no byte
  std::function<void(int64_t done, int64_t total)> on_progress;  ///< bytes of the input; may throw to stop
};

struct QuantizedTensor {
  std::string name, from, to;
  std::vector<int64_t> shape;
  int64_t from_bytes = 0, to_bytes = 0;
  double error = 0;  ///< ‖w − ŵ‖ / ‖w‖ of what was read against what was written
  std::optional<double> weighted_error;  ///< √(Σ c (w − ŵ)² / Σ c w²), c a column's importance
};

struct QuantizeReport {
  std::vector<QuantizedTensor> tensors;  ///< in file order
  int64_t parameters = 0, from_bytes = 0, to_bytes = 0;
  int64_t file_bytes = 0;
  double error = 0;  ///< of all tensors together; 0 in a plan
  std::vector<std::string> warnings;
};

/// Writes the model at `input` as one GGUF file with other types. Of a GGUF file (also split) every key is carried over
/// bit for bit; general.file_type and general.quantization_version say what is new. A Hugging Face folder, or a
/// safetensors file in one, gets GGUF's keys, names, arrangement of rows, and tokenizer; with type f32, f16 or bf16 that
/// is a conversion. One piece of one tensor is in memory at a time. The file appears whole or not at all.
///
/// Errors: not_found (no such type), invalid_argument (a bad expression, a type whose blocks do not fit or that cannot be written,
/// a value that does not fit F16, an importance matrix of another model), unsupported (a folder that GGUF cannot
/// express: its family, a key, its tokenizer), corrupt_file (also for NaN and Inf in a
/// tensor, naming it), those of reading and writing, and what on_progress throws.
QuantizeReport quantize_file(const std::string& input, const std::string& output,
                             const QuantizeSettings& settings = {});
/// The same without reading tensors or writing: types and sizes.
QuantizeReport plan_quantize(const std::string& input, const QuantizeSettings& settings = {});

/// A type that quantize_file() takes.
struct QuantizeType {
  std::string name;
  double bits = 0;  ///< per weight of its main type
};
std::vector<QuantizeType> list_quantize_types();

struct ImatrixSettings {
  int chunk = 512;      ///< tokens per window; each starts from an empty context
  int max_chunks = 0;   ///< 0: the whole text
  std::string dataset;  ///< a name to remember it by
  std::function<void(int64_t done, int64_t total)> on_progress;  ///< tokens; may throw to stop
};

struct ImatrixReport {
  int64_t tensors = 0, tokens = 0, chunks = 0;
  std::vector<std::string> missing;  ///< matrices whose inputs no point shows: they get no entry
};

/// Runs a text through a model, sums the squares of every matrix's inputs by column, and writes an importance matrix in
/// GGUF (general.type "imatrix"; tensors NAME.in_sum2, NAME.counts), which other tools read, too. Windows shorter than
/// `chunk` at the end are left out unless there is no other.
/// Errors: invalid_argument (no text, a chunk outside the context), those of running and writing.
ImatrixReport collect_imatrix(Engine& engine, const std::vector<int>& ids, const std::string& output,
                              const ImatrixSettings& settings = {});

}  // namespace liuli
