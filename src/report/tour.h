// The tour's data: how tensors, a model's shape and norms become JSON.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "liuli/config.h"
#include "liuli/trace.h"

namespace liuli {

std::string to_base64(std::span<const float> values);

/// Tensors by name, as {"shape": […], "f32": base64}; equal ones are kept once and named: {"shape": […], "as": name}
/// (blocks.1.resid_pre is blocks.0.resid_post; without β a norm's `scaled` is its `out`).
class TensorPack {
 public:
  void add(const TracedTensor& tensor);
  nlohmann::ordered_json take() { return std::move(json_); }

 private:
  nlohmann::ordered_json json_ = nlohmann::ordered_json::object();
  std::map<std::string, std::string> names_;  ///< by content
};

/// The shape and the choices of a model, with the field's names.
nlohmann::ordered_json tour_config(const ModelConfig& config);

/// ‖row‖₂ of every row of [n_tokens, width], in double.
std::vector<double> row_norms(const TracedTensor& tensor);

}  // namespace liuli
