#include "train/parameters.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/check.h"
#include "kernels/kernels.h"
#include "liuli/error.h"
#include "model/binder.h"
#include "model/families/family.h"

namespace liuli {
namespace {

int64_t product(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

// The memory of the parameters under their names, and no metadata: the configuration is known.
class ParameterSource final : public WeightSource {
 public:
  ParameterSource(const std::vector<Parameter>& parameters, std::shared_ptr<AlignedBuffer> memory)
      : memory_(std::move(memory)) {
    for (const Parameter& p : parameters)
      tensors_.push_back({p.name, DType::f32, p.shape, reinterpret_cast<const uint8_t*>(p.value),
                          p.size * static_cast<int64_t>(sizeof(float)), 0});
  }
  const std::string& path() const override { return path_; }
  std::string format() const override { return "weights in training"; }
  Naming naming() const override { return Naming::trained; }
  const Metadata& metadata() const override { LIULI_CHECK(false); }
  std::optional<std::string> companion(std::string_view) const override { return std::nullopt; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override {
    const auto it =
        std::find_if(tensors_.begin(), tensors_.end(), [&](const auto& t) { return t.name == name; });
    return it == tensors_.end() ? nullptr : &*it;
  }
  const std::vector<SetAside>& set_aside() const override { return none_; }
  void give_back(const TensorInfo&) const override {}
  int64_t file_bytes() const override { return static_cast<int64_t>(memory_->size()); }

 private:
  std::string path_ = "the model in training";
  std::shared_ptr<AlignedBuffer> memory_;
  std::vector<TensorInfo> tensors_;
  std::vector<SetAside> none_;
};

// Value (i, j) of the file is ours at …: rows reordered, or turned over.
template <class F>
void for_each_place(const Parameter& p, F&& f) {
  const int64_t rows = p.shape[0], columns = p.size / rows;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      const int64_t ours = i * columns + j;
      const int64_t file = p.spec.transposed ? j * rows + i : p.spec.order.file_row(i) * columns + j;
      f(ours, file);
    }
}

}  // namespace

Parameters::Parameters(const ModelConfig& config, const WeightSource* like) {
  const Family& family = family_of(config);
  for (TensorSpec& spec : family.list_tensors(config, Naming::hugging_face)) {
    Parameter p;
    p.name = tensor_name(Naming::hugging_face, family.names, spec);
    if (spec.optional && (like == nullptr || find_tensor(*like, p.name) == nullptr)) continue;
    p.shape = spec.shape;
    p.spec = std::move(spec);
    parameters_.push_back(std::move(p));
  }
  allocate();
}

Parameters::Parameters(std::vector<Parameter> named) : parameters_(std::move(named)) { allocate(); }

void Parameters::allocate() {
  constexpr int64_t kAlign = 16;
  for (Parameter& p : parameters_) count_ += p.size = product(p.shape);
  int64_t floats = 0;
  for (const Parameter& p : parameters_) floats += round_up(p.size, kAlign);
  values_ = std::make_shared<AlignedBuffer>(static_cast<size_t>(floats) * sizeof(float));
  gradients_ = std::make_shared<AlignedBuffer>(static_cast<size_t>(floats) * sizeof(float));
  int64_t at = 0;
  for (Parameter& p : parameters_) {
    p.value = values_->as<float>() + at;
    p.gradient = gradients_->as<float>() + at;
    at += round_up(p.size, kAlign);
  }
}

Parameter* Parameters::find(std::string_view name) {
  const auto it =
      std::find_if(parameters_.begin(), parameters_.end(), [&](const auto& p) { return p.name == name; });
  return it == parameters_.end() ? nullptr : &*it;
}

void Parameters::clear_gradients() { std::memset(gradients_->data(), 0, gradients_->size()); }

GradientMap Parameters::gradient_map() {
  return {values_->as<float>(), gradients_->as<float>(),
          static_cast<int64_t>(values_->size() / sizeof(float))};
}

void Parameters::copy_from(const WeightSource& source) {
  for (Parameter& p : parameters_) {
    const TensorInfo* tensor = find_tensor(source, p.name);
    if (tensor == nullptr)
      throw Error(ErrorCode::corrupt_file, fmt::format("{}: tensor {} is missing", source.path(), p.name));
    if (tensor->elements() != p.size)
      throw Error(ErrorCode::corrupt_file,
                  fmt::format("{}: tensor {} has shape {}, the configuration demands {}", source.path(),
                              p.name, shape_text(tensor->shape), shape_text(p.shape)));
    std::vector<float> stored(static_cast<size_t>(p.size));
    kernels::decode_row(tensor->type, source.bytes_of(*tensor).get(), p.size, stored.data());
    for_each_place(p, [&](int64_t ours, int64_t file) {
      p.value[ours] = stored[static_cast<size_t>(file)] + (p.spec.plus_one ? 1.0f : 0.0f);
    });
  }
}

std::vector<float> Parameters::file_form(const Parameter& p, bool gradient) const {
  std::vector<float> file(static_cast<size_t>(p.size));
  const float* from = gradient ? p.gradient : p.value;
  for_each_place(p, [&](int64_t ours, int64_t place) {
    file[static_cast<size_t>(place)] = from[ours] - (p.spec.plus_one && !gradient ? 1.0f : 0.0f);
  });
  return file;
}

std::shared_ptr<WeightSource> Parameters::source() const {
  return std::make_shared<ParameterSource>(parameters_, values_);
}

}  // namespace liuli
