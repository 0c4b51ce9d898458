// Implements include/liuli/pack.h.
#include "liuli/pack.h"

#include "model/load.h"

namespace liuli {

PanelFileInfo pack_model(const std::string& model, const PackSettings& settings) {
  const auto source = open_weights(model);
  ThreadPool pool(settings.threads);
  PanelFileInfo file;
  PackOptions options{settings.output, {}, settings.on_progress};
  options.start = [&](const std::string& path, int64_t bytes) {
    file = {path, bytes};
    if (settings.on_start) settings.on_start(file);
  };
  write_panel_file(*source, pool, options);
  return file;
}

}  // namespace liuli
