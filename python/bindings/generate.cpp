// Continuing a text, token by token if somebody listens.
#include <atomic>

#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "hooks.h"
#include "model.h"

namespace liuli::python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// Stops a generation from another thread.
struct StopFlag {
  std::atomic<bool> set = false;
};

struct GenerateOptions {
  GenerateSettings settings;
  std::vector<PythonHook> hooks;
  std::vector<int> source;
};

nb::dict result_dict(const GenerateResult& result) {
  nb::list tokens, logprobs;
  for (const GeneratedToken& token : result.tokens) {
    if (token.id < 0) continue;  // a last piece of text without a token of its own
    tokens.append(token.id);
    logprobs.append(token.logprob);
  }
  nb::dict d;
  d["text"] = result.text;
  d["tokens"] = tokens;
  d["logprobs"] = logprobs;
  d["reason"] = to_string(result.reason);
  d["prompt_tokens"] = result.prompt_tokens;
  d["prompt_seconds"] = result.prompt_seconds;
  d["decode_seconds"] = result.decode_seconds;
  return d;
}

// on_token is None or called as on_token(id, text, logprob); Ctrl-C ends the generation between two tokens.
nb::dict generate(PyModel& model, const std::vector<int>& prompt, const GenerateOptions& options,
                  const nb::object& on_token, const StopFlag* stop) {
  GenerateSettings settings = options.settings;
  settings.hooks = engine_hooks(options.hooks);
  if (stop != nullptr) settings.cancel = &stop->set;
  settings.on_prompt_progress = [](int, int) {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
  const auto each = [&](const GeneratedToken& token) {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!on_token.is_none()) on_token(token.id, token.text, token.logprob);
    return true;
  };
  const GenerateResult result = model.run([&] {
    Session session(model.engine);
    if (!options.source.empty()) session.read_source(options.source);
    return session.generate(prompt, settings, each);
  });
  return result_dict(result);
}

// A setting of the sampler as an attribute of GenerateOptions.
template <class T>
void sampling(nb::class_<GenerateOptions>& c, const char* name, T SamplingSettings::*member) {
  c.def_prop_rw(
      name, [member](const GenerateOptions& o) { return o.settings.sampling.*member; },
      [member](GenerateOptions& o, T value) { o.settings.sampling.*member = value; });
}

template <class T>
void setting(nb::class_<GenerateOptions>& c, const char* name, T GenerateSettings::*member) {
  c.def_prop_rw(
      name, [member](const GenerateOptions& o) { return o.settings.*member; },
      [member](GenerateOptions& o, T value) { o.settings.*member = std::move(value); });
}

}  // namespace

void bind_generate(nb::class_<PyModel>& model) {
  nb::class_<StopFlag>(model, "StopFlag", "Stops a generation from another thread.")
      .def(nb::init<>())
      .def("stop", [](StopFlag& flag) { flag.set = true; });
  nb::class_<GenerateOptions> options(model, "GenerateOptions", "How a text is continued.");
  options.def(nb::init<>())
      .def_rw("hooks", &GenerateOptions::hooks)
      .def_rw("source", &GenerateOptions::source);
  sampling(options, "temperature", &SamplingSettings::temperature);
  sampling(options, "top_k", &SamplingSettings::top_k);
  sampling(options, "top_p", &SamplingSettings::top_p);
  sampling(options, "min_p", &SamplingSettings::min_p);
  sampling(options, "seed", &SamplingSettings::seed);
  sampling(options, "repetition_penalty", &SamplingSettings::repetition_penalty);
  setting(options, "max_tokens", &GenerateSettings::max_tokens);
  setting(options, "stop", &GenerateSettings::stop);
  setting(options, "ignore_eos", &GenerateSettings::ignore_eos);
  model.def("generate", &generate, "ids"_a, "options"_a, "on_token"_a = nb::none(), "stop"_a = nb::none());
}

}  // namespace liuli::python
