// A loaded model as Python holds it.
#pragma once
#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include <nanobind/nanobind.h>

#include "liuli/engine.h"

namespace liuli::python {

/// An engine runs for one caller at a time; other Python threads wait without the GIL.
struct PyModel {
  explicit PyModel(Engine&& loaded) : engine(std::move(loaded)) {}

  /// Calls work() without the GIL. Errors: invalid_argument from inside a hook of the same model (it would wait for itself).
  template <class F>
  auto run(F&& work) {
    if (runner.load() == std::this_thread::get_id())
      throw Error(ErrorCode::invalid_argument, "a hook cannot run the model it is called by");
    const nanobind::gil_scoped_release released;
    const std::lock_guard lock(busy);
    const Mark mark(runner);
    return work();
  }

  Engine engine;

 private:
  struct Mark {
    explicit Mark(std::atomic<std::thread::id>& place) : at(place) { at = std::this_thread::get_id(); }
    ~Mark() { at = std::thread::id(); }
    std::atomic<std::thread::id>& at;
  };
  std::mutex busy;
  std::atomic<std::thread::id> runner;
};

void bind_model(nanobind::module_& module);
void bind_generate(nanobind::class_<PyModel>& model);

}  // namespace liuli::python
