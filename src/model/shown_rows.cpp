#include "model/shown_rows.h"

namespace liuli {

Rows listeners_rows(const Step& s, Point point, int layer, int64_t n, int64_t width) {
  constexpr int64_t kPanel = 64;  // the stride of make_rows: wider rows would need zeros behind them
  if (width % kPanel != 0 || !s.listening(point, layer) || s.changeable(point, layer)) return {};
  float* storage = s.listener->storage(s.place(point, layer), n * width);
  if (reinterpret_cast<uintptr_t>(storage) % AlignedBuffer::kAlignment != 0) storage = nullptr;
  return {storage, n, width, width};
}

Rows rows_to_show(Step& s, Point point, int layer, int64_t n, int64_t width) {
  const Rows rows = listeners_rows(s, point, layer, n, width);
  return rows.data != nullptr ? rows : make_rows(s.ops.scratch, n, width);
}

}  // namespace liuli
