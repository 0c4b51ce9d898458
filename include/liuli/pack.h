// A model's weights in the form they run in, as a file that every later load maps: nothing is copied, processes share it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace liuli {

/// A panel file. LoadSettings::panels says how it is found.
struct PanelFileInfo {
  std::string path;
  int64_t bytes = 0;
};

struct PackSettings {
  std::string output;  ///< "": MODEL.panels beside the model, where every load finds it
  int threads = 0;     ///< 0: every CPU this process may use; changes no byte
  std::function<void(const PanelFileInfo&)> on_start;            ///< what will be written; may throw to stop
  std::function<void(int64_t done, int64_t total)> on_progress;  ///< bytes of the file; may throw to stop
};

/// Writes the panel file of a model; it appears whole or not at all, in place of an older one. It is about as large as the
/// model, and of use only beside it: metadata, vocabulary and vectors stay in the model's own files.
///
/// Errors: as Engine::load; invalid_argument where the output is the model; io_error where the disk lacks room.
PanelFileInfo pack_model(const std::string& model, const PackSettings& settings = {});

}  // namespace liuli
