#include "train/lora.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "core/rng.h"
#include "liuli/error.h"

namespace liuli {
namespace {

// Short names, by role: what they are called differs between families.
bool has_short_name(Role role, const std::string& name) {
  switch (role) {
    case Role::attn_q:
      return name == "q";
    case Role::attn_k:
      return name == "k";
    case Role::attn_v:
      return name == "v";
    case Role::attn_qkv:
      return name == "q" || name == "k" || name == "v";
    case Role::attn_o:
      return name == "o";
    case Role::ffn_gate:
      return name == "gate";
    case Role::ffn_gate_up:
      return name == "gate" || name == "up";
    case Role::ffn_up:
      return name == "up";
    case Role::ffn_down:
      return name == "down";
    default:
      return false;
  }
}

bool is_target(const Parameter& p, const std::string& name) {
  return has_short_name(p.spec.role, name) || (p.spec.layer >= 0 && module_name(p.name) == name);
}

std::vector<Parameter*> find_targets(Parameters& weights, const std::vector<std::string>& names) {
  std::vector<Parameter*> found;
  std::set<std::string> modules;
  for (const std::string& name : names) {
    const size_t before = found.size();
    for (Parameter& p : weights.all()) {
      if (p.shape.size() != 2 || p.spec.layer < 0) continue;
      modules.insert(module_name(p.name));
      if (is_target(p, name) && std::find(found.begin(), found.end(), &p) == found.end()) found.push_back(&p);
    }
    if (found.size() > before) continue;
    std::string there;
    for (const std::string& m : modules) there += (there.empty() ? "" : ", ") + m;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("lora target \"{}\" names no further matrix; there are {}", name, there));
  }
  return found;
}

std::vector<Parameter> adapter_list(const std::vector<Parameter*>& targets, int64_t rank) {
  std::vector<Parameter> list;
  for (const Parameter* p : targets) {
    Parameter a, b;
    const std::string module = p->name.substr(0, p->name.rfind('.'));
    a.name = module + ".lora_A";
    a.shape = {rank, p->shape[1]};
    b.name = module + ".lora_B";
    b.shape = {p->shape[0], rank};
    list.push_back(std::move(a));
    list.push_back(std::move(b));
  }
  return list;
}

int64_t checked_rank(int64_t rank) {
  if (rank < 1)
    throw Error(ErrorCode::invalid_argument, fmt::format("lora rank is {}, expected 1 or more", rank));
  return rank;
}

void draw(Parameter& a, uint64_t seed, uint64_t stream) {
  Rng rng(seed, stream);
  const double bound = 1 / std::sqrt(static_cast<double>(a.shape[1]));
  for (int64_t i = 0; i < a.size; i++) a.value[i] = static_cast<float>((2 * rng.uniform() - 1) * bound);
}

// row += f · x
void add_scaled(float* row, float f, const float* x, int64_t n) {
  for (int64_t j = 0; j < n; j++) row[j] += f * x[j];
}

}  // namespace

std::string module_name(const std::string& parameter) {
  const size_t end = parameter.rfind('.'), begin = parameter.rfind('.', end - 1);
  return parameter.substr(begin == std::string::npos ? 0 : begin + 1, end - begin - 1);
}

Lora::Lora(Parameters& weights, const LoraSettings& settings)
    : settings_(settings),
      adapters_(adapter_list(find_targets(weights, settings.targets), checked_rank(settings.rank))) {
  size_t at = 0;
  for (Parameter* p : find_targets(weights, settings.targets)) {
    draw(adapters_.all()[at], settings.seed, (uint64_t{0x4c} << 48) + at);
    adapted_.push_back({p, at, at + 1, std::vector<float>(p->value, p->value + p->size)});
    at += 2;
  }
}

std::vector<std::string> Lora::target_modules() const {
  std::set<std::string> modules;
  for (const Adapted& a : adapted_) modules.insert(module_name(a.weight->name));
  return {modules.begin(), modules.end()};
}

// Threads take rows of dB and columns of dA: an output's sum runs over rows ascending, whoever forms it.
void Lora::form_gradients(ThreadPool& pool) {
  const auto factor = static_cast<float>(settings_.alpha / static_cast<double>(settings_.rank));
  const int64_t r = settings_.rank;
  adapters_.clear_gradients();
  for (const Adapted& adapted : adapted_) {
    const Parameter &w = *adapted.weight, &a = adapters_.all()[adapted.a], &b = adapters_.all()[adapted.b];
    const int64_t d_out = w.shape[0], d_in = w.shape[1];
    pool.parallel_for(d_out, [&](int64_t begin, int64_t end, int) {
      for (int64_t o = begin; o < end; o++)
        for (int64_t k = 0; k < r; k++) {
          float sum = 0;
          for (int64_t i = 0; i < d_in; i++) sum += w.gradient[o * d_in + i] * a.value[k * d_in + i];
          b.gradient[o * r + k] = factor * sum;
        }
    });
    pool.parallel_for(d_in, [&](int64_t begin, int64_t end, int) {
      for (int64_t o = 0; o < d_out; o++)
        for (int64_t k = 0; k < r; k++)
          add_scaled(a.gradient + k * d_in + begin, factor * b.value[o * r + k],
                     w.gradient + o * d_in + begin, end - begin);
    });
  }
}

void Lora::form_weights(ThreadPool& pool) {
  const auto factor = static_cast<float>(settings_.alpha / static_cast<double>(settings_.rank));
  const int64_t r = settings_.rank;
  for (const Adapted& adapted : adapted_) {
    Parameter& w = *adapted.weight;
    const Parameter &a = adapters_.all()[adapted.a], &b = adapters_.all()[adapted.b];
    const int64_t d_in = w.shape[1];
    pool.parallel_for(w.shape[0], [&](int64_t begin, int64_t end, int) {
      for (int64_t o = begin; o < end; o++) {
        float* row = w.value + o * d_in;
        std::copy_n(adapted.frozen.data() + o * d_in, d_in, row);
        for (int64_t k = 0; k < r; k++)
          add_scaled(row, factor * b.value[o * r + k], a.value + k * d_in, d_in);
      }
    });
  }
}

}  // namespace liuli
