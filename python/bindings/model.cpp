#include "model.h"

#include <fmt/format.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <nlohmann/json.hpp>

#include "arrays.h"
#include "hooks.h"

namespace liuli::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

ProductClassChoice product_class(const std::string& name) {
  if (name == "auto") return ProductClassChoice::automatic;
  if (name == "prompt") return ProductClassChoice::prompt;
  if (name == "decode") return ProductClassChoice::decode;
  if (name == "f32") return ProductClassChoice::f32;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("product_class is \"{}\", expected auto, prompt, decode or f32", name));
}

PyModel* load(const std::string& path, int threads, bool exact, const std::string& rounding,
              const std::string& chat_template, const std::string& cache_type,
              const std::string& prompt_products, const std::string& panels) {
  LoadSettings settings;
  settings.threads = threads;
  settings.exact = exact;
  settings.product_class = product_class(rounding);
  settings.chat_template = chat_template;
  settings.cache_type = cache_type_named(cache_type);
  settings.prompt_products = prompt_products_named(prompt_products);
  settings.panels = panels;
  settings.on_progress = [](int64_t, int64_t) {  // Ctrl-C while a large file is read
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
  const nb::gil_scoped_release released;
  return new PyModel(Engine::load(path, settings));  // Python owns it
}

const char* name_of(Activation activation) {
  switch (activation) {
    case Activation::silu:
      return "silu";
    case Activation::gelu_tanh:
      return "gelu_new";
    case Activation::gelu_erf:
      return "gelu";
    case Activation::relu:
      break;
  }
  return "relu";
}

const char* name_of(NormKind kind) {
  return kind == NormKind::layer ? "LN" : kind == NormKind::rms ? "RMS" : "";
}

nb::dict layer_dict(const LayerPlan& plan) {
  nb::dict d;
  d["attn_norm_before"] = name_of(plan.attn_norm.before);
  d["attn_norm_on_output"] = name_of(plan.attn_norm.on_output);
  d["attn_norm_after_add"] = name_of(plan.attn_norm.after_add);
  d["ffn_norm_on_output"] = name_of(plan.ffn_norm.on_output);
  d["routed"] = plan.routed;
  d["sliding_window"] = plan.sliding_window;
  d["rope"] = plan.rope;
  return d;
}

void add_sizes(nb::dict& d, const ModelConfig& c) {
  d["family"] = c.family;
  d["name"] = c.name;
  d["vocab_size"] = c.vocab_size;
  d["d_model"] = c.d_model;
  d["n_layers"] = c.n_layers;
  d["d_ff"] = c.d_ff;
  d["n_heads"] = c.n_heads;
  d["n_kv_heads"] = c.n_kv_heads;
  d["head_dim"] = c.head_dim;
  d["max_seq_len"] = c.max_seq_len;
  d["n_experts"] = c.experts.n_experts;
  d["n_experts_active"] = c.experts.n_experts_active;
}

void add_choices(nb::dict& d, const ModelConfig& c) {
  d["norm_eps"] = c.norm_eps;
  d["activation"] = name_of(c.activation);
  d["gated_ffn"] = c.gated_ffn;
  d["final_norm"] = name_of(c.final_norm);
  d["tied_embeddings"] = c.tied_embeddings;
  d["positions"] = c.positions == PositionTable::none      ? "rotary"
                   : c.positions == PositionTable::learned ? "standard"
                                                           : "sinusoidal";
  d["embedding_scale"] = c.embedding_scale;
  d["attention_scale"] = c.attention_scale;
  d["attention_soft_cap"] = c.attention_soft_cap;
  d["final_soft_cap"] = c.final_soft_cap;
  d["causal"] = c.causal;
  d["has_output"] = c.has_output;
  d["is_latent"] = c.is_latent();
  d["is_encoder_decoder"] = c.is_encoder_decoder();
}

nb::dict config_dict(const PyModel& model) {
  const ModelConfig& c = model.engine.config();
  nb::dict d;
  add_sizes(d, c);
  add_choices(d, c);
  nb::list layers, thetas, dims;
  for (const LayerPlan& plan : c.layers) layers.append(layer_dict(plan));
  for (const RopeConfig& rope : c.ropes) {
    thetas.append(rope.theta);
    dims.append(rope.dim);
  }
  d["layers"] = layers;
  d["rope_thetas"] = thetas;
  d["rope_dims"] = dims;
  return d;
}

std::vector<std::pair<std::string, std::string>> point_names(const PyModel& model) {
  std::vector<std::pair<std::string, std::string>> names;
  for (const PointName& point : list_point_names(model.engine.config()))
    names.emplace_back(point.name, point.alias);
  return names;
}

// (name, shape, formula, alias)
using PointRow = std::tuple<std::string, std::string, std::string, std::string>;
std::vector<PointRow> points(const PyModel& model) {
  std::vector<PointRow> rows;
  for (const PointDescription& p : list_points(model.engine.config()))
    rows.emplace_back(p.name, p.shape, p.formula, p.alias);
  return rows;
}

struct RunOptions {
  std::vector<std::string> points;
  std::vector<PythonHook> hooks;
  int stop_at_layer = -1;
  int64_t max_bytes = 0;
  std::vector<int> source, token_types;
};

// Takes a capture straight into the memory of its arrays.
class ArraySink final : public TraceSink {
 public:
  void begin(const std::vector<TracedTensor>& tensors) override {
    ArrayMemory memory;
    for (const TracedTensor& tensor : tensors) {
      int64_t n = 1;
      for (const int64_t size : tensor.shape) n *= size;
      values_.push_back(memory.floats(n));
    }
  }
  float* memory(size_t tensor) override { return values_[tensor].get(); }
  void write(size_t, int64_t, const float*, int64_t) override {}  // nothing comes this way
  std::shared_ptr<float>& values(size_t tensor) { return values_[tensor]; }

 private:
  std::vector<std::shared_ptr<float>> values_;
};

nb::list trace(PyModel& model, const std::vector<int>& ids, const RunOptions& options) {
  TraceSettings settings;
  settings.stop_at_layer = options.stop_at_layer;
  settings.max_bytes = options.max_bytes;
  settings.beside = {options.source, options.token_types};
  settings.hooks = engine_hooks(options.hooks);
  if (!options.hooks.empty()) settings.chunk = static_cast<int>(ids.size());  // a hook sees the text whole
  ArraySink sink;
  settings.sink = &sink;
  const std::vector<TracedTensor> traced =
      model.run([&] { return model.engine.trace(ids, options.points, settings); });
  nb::list list;
  for (size_t i = 0; i < traced.size(); i++)
    list.append(nb::make_tuple(traced[i].name, shared_array(std::move(sink.values(i)), traced[i].shape)));
  return list;
}

void bind_run(nb::class_<PyModel>& c) {
  nb::class_<RunOptions>(c, "RunOptions", "What a run shows and changes.")
      .def(nb::init<>())
      .def_rw("points", &RunOptions::points, "names, aliases or wildcards")
      .def_rw("hooks", &RunOptions::hooks, "(points, call(values, name, first_position, tokens))")
      .def_rw("stop_at_layer", &RunOptions::stop_at_layer, "run the first so many blocks only; -1: all")
      .def_rw("max_bytes", &RunOptions::max_bytes, "a larger capture is refused before it runs")
      .def_rw("source", &RunOptions::source, "an encoder-decoder's source text")
      .def_rw("token_types", &RunOptions::token_types, "BERT's segments");
  c.def("trace", &trace, "ids"_a, "options"_a,
        "Runs the tokens; the chosen values as (name, read-only array), in the order a token meets them.");
  c.def(
      "trace_bytes",
      [](const PyModel& m, int64_t n, const std::vector<std::string>& names, int64_t n_source) {
        return m.engine.trace_bytes(n, names, n_source);
      },
      "n_tokens"_a, "points"_a, "n_source"_a = 0, "Bytes such a capture would hold.");
}

// [(text's vector, tokens run, whether it was cut)]
nb::list embed(PyModel& model, const std::vector<std::string>& texts, const std::string& pooling,
               std::optional<bool> normalise) {
  EmbedSettings settings;
  if (!pooling.empty()) settings.pooling = pooling_from(pooling);
  settings.normalise = normalise;
  std::vector<Embedding> embeddings = model.run([&] { return model.engine.embed(texts, settings); });
  nb::list list;
  for (Embedding& e : embeddings) {
    const std::vector<int64_t> shape = {static_cast<int64_t>(e.values.size())};
    list.append(nb::make_tuple(owned_array(std::move(e.values), shape), e.tokens, e.cut));
  }
  return list;
}

std::pair<std::string, std::vector<int>> render_chat(const PyModel& model, const std::string& messages,
                                                     bool add_generation_prompt) {
  const auto parsed = nlohmann::ordered_json::parse(messages);
  const ChatPrompt prompt = model.engine.render_chat(parsed, nullptr, add_generation_prompt);
  return {prompt.text, prompt.ids};
}

void bind_text(nb::class_<PyModel>& c) {
  c.def(
       "tokenize",
       [](const PyModel& m, const std::string& text, bool add_special, bool parse_special) {
         return m.engine.tokenize(text, add_special, parse_special);
       },
       "text"_a, "add_special"_a = true, "parse_special"_a = false)
      .def("detokenize",
           [](const PyModel& m, const std::vector<int>& ids) { return m.engine.detokenize(ids); })
      .def("token_text", [](const PyModel& m, int id) { return m.engine.token_text(id); })
      .def("vocab_size", [](const PyModel& m) { return m.engine.vocab_size(); })
      .def("bos_id", [](const PyModel& m) { return m.engine.bos_id(); })
      .def("is_end_token", [](const PyModel& m, int id) { return m.engine.is_end_token(id); })
      .def("has_chat_template", [](const PyModel& m) { return m.engine.has_chat_template(); })
      .def("render_chat", &render_chat, "messages_json"_a, "add_generation_prompt"_a = true);
}

// (name, shape, file's tensor, stored type)
nb::list weights(const PyModel& model) {
  nb::list list;
  for (const WeightInfo& w : model.engine.weights())
    list.append(nb::make_tuple(w.name, nb::tuple(nb::cast(w.shape)), w.tensor, w.type));
  return list;
}

Array weight(PyModel& model, const std::string& name) {
  WeightValues w = model.run([&] { return model.engine.weight(name); });
  return owned_array(std::move(w.values), w.info.shape);
}

}  // namespace

void bind_model(nb::module_& module) {
  nb::class_<PyModel> c(module, "Model", "A loaded model. liuli.Model is what people use.");
  c.def_static("load", &load, "path"_a, "threads"_a = 0, "exact"_a = false, "product_class"_a = "auto",
               "chat_template"_a = "", "cache_type"_a = "auto", "prompt_products"_a = "bf16",
               "panels"_a = "");
  c.def("config", &config_dict, "The model's sizes and choices.");
  c.def("threads", [](const PyModel& m) { return m.engine.threads(); });
  c.def("point_names", &point_names, "Every value of the model and TransformerLens's name of it, or \"\".");
  c.def("points", &points, "The table of points: (name, shape, formula, alias).");
  c.def("weights", &weights, "(name, shape, tensor of the file, stored type) of every weight.");
  c.def("weight", &weight, "name"_a, "One weight, decoded: [d_out, d_in] or [n], read-only.");
  c.def("embed", &embed, "texts"_a, "pooling"_a = "", "normalise"_a = nb::none());
  bind_text(c);
  bind_run(c);
  bind_generate(c);
}

}  // namespace liuli::python
