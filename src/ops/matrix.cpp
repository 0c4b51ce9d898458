#include "ops/matrix.h"

#include <algorithm>

#include "core/check.h"
#include "core/rows.h"
#include "kernels/panels.h"

namespace liuli {

Matrix::Matrix(std::string name, DType type, int64_t d_out, int64_t d_in, const uint8_t* file_rows,
               RowOrder order)
    : Matrix(std::move(name), type, d_out, d_in, FileRows{{std::shared_ptr<const void>(), file_rows}},
             order) {}

Matrix::Matrix(std::string name, DType type, int64_t d_out, int64_t d_in, FileRows file_rows, RowOrder order)
    : name_(std::move(name)),
      type_(type),
      d_out_(d_out),
      d_in_(d_in),
      file_rows_(std::move(file_rows)),
      order_(order),
      panel_bytes_(kernels::panel_layout(type).bytes(d_in)) {
  LIULI_CHECK(d_out > 0 && d_in > 0 && d_in % dtype_info(type).block == 0);
  LIULI_CHECK(order.heads == 0 || order.heads * order.head_dim == d_out);
}

void Matrix::build_panels(ThreadPool& pool) {
  if (has_panels()) return;
  auto memory = std::make_shared<AlignedBuffer>(run_bytes());
  build_panels(pool, std::shared_ptr<uint8_t>(memory, memory->data()));
}

void Matrix::hold_rows() {
  if (file_rows_.built == nullptr) return;
  file_rows_.kept = {file_rows_.built, file_rows_.built->get() + file_rows_.offset};
  file_rows_.built.reset();
}

void Matrix::build_panels(ThreadPool& pool, std::shared_ptr<uint8_t> memory, const RowsCopied& copied) {
  if (has_panels()) return;
  hold_rows();
  pack_panels(pool, 0, n_panels(), memory.get(), copied);
  use_panels(std::move(memory));
}

void Matrix::use_panels(std::shared_ptr<const uint8_t> panels) {
  LIULI_CHECK(reinterpret_cast<uintptr_t>(panels.get()) % AlignedBuffer::kAlignment == 0);
  panels_ = std::move(panels);
  file_rows_ = {};
}

void Matrix::pack_panels(ThreadPool& pool, int64_t first_panel, int64_t last_panel, uint8_t* to,
                         const RowsCopied& copied) const {
  // Rows are reported every few MiB: what lies between is resident twice, in the file's pages and in the panels.
  constexpr int64_t kReportBytes = int64_t{4} << 20;
  const int64_t together =
      std::max<int64_t>(1, kReportBytes / static_cast<int64_t>(kernels::kPanelRows * stored_row_bytes()));
  pool.parallel_for(last_panel - first_panel, [&](int64_t begin, int64_t end, int) {
    for (int64_t first = begin; first < end; first += together) {
      const int64_t last = std::min(end, first + together);
      for (int64_t i = first; i < last; i++)
        pack_panel(first_panel + i, to + static_cast<size_t>(i) * panel_bytes_);
      tell_copied(copied, first_panel + first, first_panel + last);
    }
  });
}

// Rows that a head's order mixes are reported with the whole head; the next panels read some of them once more.
void Matrix::tell_copied(const RowsCopied& copied, int64_t first_panel, int64_t last_panel) const {
  if (!copied) return;
  const int64_t unit = order_.heads == 0 ? 1 : order_.head_dim;
  const int64_t begin = first_panel * kernels::kPanelRows / unit * unit,
                end = std::min(d_out_, round_up(last_panel * kernels::kPanelRows, unit));
  const auto bytes = static_cast<int64_t>(stored_row_bytes());
  copied(file_rows_.kept.get() + begin * bytes, (end - begin) * bytes);
}

// The memory was zeroed: rows that the last panel lacks are zero rows.
void Matrix::pack_panel(int64_t panel, uint8_t* to) const noexcept {
  const int64_t first = panel * kernels::kPanelRows,
                n = std::min<int64_t>(kernels::kPanelRows, d_out_ - first);
  const uint8_t* rows[kernels::kPanelRows];
  for (int64_t i = 0; i < n; i++)
    rows[i] = file_rows_.kept.get() + static_cast<size_t>(order_.file_row(first + i)) * stored_row_bytes();
  if (n == kernels::kPanelRows) return kernels::pack_rows(type_, rows, to, d_in_);
  for (int i = 0; i < n; i++) kernels::panel_layout(type_).pack_row(rows[i], to, i, d_in_);
}

const float* Matrix::f32_rows() const {
  LIULI_CHECK(type_ == DType::f32 && !has_panels() && order_.heads == 0);
  LIULI_CHECK(reinterpret_cast<uintptr_t>(file_rows_.kept.get()) % alignof(float) == 0);
  return reinterpret_cast<const float*>(file_rows_.kept.get());
}

const uint8_t* Matrix::stored_row(int64_t row, std::vector<uint8_t>& file_row) const {
  LIULI_CHECK(row >= 0 && row < d_out_);
  if (!has_panels())
    return file_rows_.kept.get() + static_cast<size_t>(order_.file_row(row)) * stored_row_bytes();
  file_row.resize(stored_row_bytes());
  kernels::panel_layout(type_).unpack_row(
      panels() + static_cast<size_t>(row / kernels::kPanelRows) * panel_bytes_, file_row.data(),
      static_cast<int>(row % kernels::kPanelRows), d_in_);
  return file_row.data();
}

void Matrix::decode_row(int64_t row, float* out, std::vector<uint8_t>& file_row) const {
  kernels::decode_row(type_, stored_row(row, file_row), d_in_, out);
}

}  // namespace liuli
