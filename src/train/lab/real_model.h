// What experiments ask of a loaded model; whoever loads it (the engine) answers.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "liuli/config.h"
#include "liuli/hook.h"
#include "liuli/trace.h"

namespace liuli::lab {

class RealModel {
 public:
  virtual ~RealModel() = default;
  virtual const ModelConfig& config() const = 0;
  virtual std::string file_name() const = 0;
  virtual std::vector<int> tokenize(std::string_view text) const = 0;
  virtual std::string token_text(int id) const = 0;
  virtual std::vector<TracedTensor> trace(const std::vector<int>& ids,
                                          const std::vector<std::string>& points) = 0;
  /// Logits of every position.
  virtual void logits(const std::vector<int>& ids, const std::vector<Hook>& hooks,
                      const std::function<void(int, std::span<const float>)>& on_row) = 0;
  /// The final norm and the output matrix on rows of the residual stream: [rows][vocab_size].
  virtual std::vector<std::vector<float>> lens(const std::vector<std::vector<float>>& rows) = 0;
  /// A weight by name ("blocks.3.ln1.weight"), decoded; empty where the model has none.
  virtual std::vector<float> weight(const std::string& name) = 0;
};

}  // namespace liuli::lab
