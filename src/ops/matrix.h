// A weight matrix as stored, in one of two forms: the file's own rows (mapped), or panels ready to run.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/arena.h"
#include "core/dtype.h"
#include "core/thread_pool.h"
#include "kernels/kernels.h"

namespace liuli {

/// Which file row is row i of the matrix. GGUF's llama files interleave the halves of each q and k head, DeepSeek's
/// those of a head's rotated rows, which come after the first `kept`; undoing it here lets every family use one RoPE
/// pairing. heads = 0: as in the file.
struct RowOrder {
  int64_t heads = 0, head_dim = 0, kept = 0;
  int64_t file_row(int64_t row) const {
    if (heads == 0) return row;
    const int64_t at = row % head_dim - kept, half = (head_dim - kept) / 2;
    if (at < 0) return row;
    return row - at + 2 * (at % half) + at / half;
  }
};

/// Rows that no file holds as a matrix needs them (transposes, FP8 with its scales beside it): put together when the
/// first matrix over them asks, gone when the last one has let go.
class BuiltRows {
 public:
  using Build = std::function<std::shared_ptr<const uint8_t>()>;
  explicit BuiltRows(Build build) : build_(std::move(build)) {}
  /// For one thread. Errors: out_of_memory.
  const uint8_t* get() {
    if (rows_ == nullptr) rows_ = build_();
    return rows_.get();
  }

 private:
  Build build_;
  std::shared_ptr<const uint8_t> rows_;
};

/// Where a matrix finds its rows before it has panels: somebody keeps them, or they are still to be built.
struct FileRows {
  std::shared_ptr<const uint8_t> kept = nullptr;
  std::shared_ptr<BuiltRows> built = nullptr;
  int64_t offset = 0;  ///< bytes into the built ones
  FileRows from(int64_t bytes) const {
    if (built != nullptr) return {nullptr, built, offset + bytes};
    return {{kept, kept.get() + bytes}};
  }
};

/// What build_panels calls, from any of the threads, when it has copied [rows, rows + bytes) and will hardly read them again.
using RowsCopied = std::function<void(const uint8_t* rows, int64_t bytes)>;

/// y = W x with W [d_out, d_in]. Holds the stored values exactly; nothing is requantised.
class Matrix {
 public:
  Matrix() = default;
  /// Describes file rows, at any alignment, that somebody else keeps: they must outlive the matrix (or the call of
  /// build_panels).
  Matrix(std::string name, DType type, int64_t d_out, int64_t d_in, const uint8_t* file_rows,
         RowOrder order = {});
  /// The same for rows that may have no other owner, or are built when they are needed; build_panels lets go of them.
  Matrix(std::string name, DType type, int64_t d_out, int64_t d_in, FileRows file_rows, RowOrder order = {});

  bool empty() const { return d_out_ == 0; }
  const std::string& name() const { return name_; }
  DType type() const { return type_; }
  int64_t d_out() const { return d_out_; }
  int64_t d_in() const { return d_in_; }
  int64_t bytes() const { return d_out_ * row_bytes(type_, d_in_); }  ///< as stored in the file

  /// Builds rows that are still to be built: whoever needs them in place asks first. Errors: out_of_memory.
  void hold_rows();
  /// Copies the rows into panels (in parallel) and lets go of the file. Errors: out_of_memory.
  void build_panels(ThreadPool& pool);
  /// The same into zeroed memory of at least run_bytes(), aligned to 64 bytes: many matrices may share one block.
  void build_panels(ThreadPool& pool, std::shared_ptr<uint8_t> memory, const RowsCopied& copied = {});
  /// The same for panels [first, last), which the matrix does not keep. Its rows are held.
  void pack_panels(ThreadPool& pool, int64_t first, int64_t last, uint8_t* to,
                   const RowsCopied& copied = {}) const;
  /// One of them, by one thread.
  void pack_panel(int64_t panel, uint8_t* to) const noexcept;
  /// Takes what build_panels would have built, run_bytes() aligned to 64, and lets go of the file.
  void use_panels(std::shared_ptr<const uint8_t> panels);
  /// Its rows are in no file: somebody puts them together when they are needed.
  bool has_built_rows() const { return file_rows_.built != nullptr; }
  bool has_panels() const { return panels_ != nullptr; }
  const uint8_t* panels() const { return panels_.get(); }
  size_t panel_bytes() const { return panel_bytes_; }  ///< known before they are built
  int64_t n_panels() const { return (d_out_ + kernels::kPanelRows - 1) / kernels::kPanelRows; }
  size_t run_bytes() const { return panel_bytes_ * static_cast<size_t>(n_panels()); }  ///< of all panels

  /// The rows in place, of an F32 matrix in file-row form and the file's order: what training works on.
  const float* f32_rows() const;

  /// Row `row` as f32, exactly decoded. `file_row` is scratch of at least stored_row_bytes() bytes.
  void decode_row(int64_t row, float* out, std::vector<uint8_t>& file_row) const;
  /// The bytes of row `row` as the file has them: in place, or put together in `file_row`.
  const uint8_t* stored_row(int64_t row, std::vector<uint8_t>& file_row) const;
  int64_t file_row_index(int64_t row) const { return order_.file_row(row); }
  size_t stored_row_bytes() const { return static_cast<size_t>(row_bytes(type_, d_in_)); }

 private:
  void tell_copied(const RowsCopied& copied, int64_t first_panel, int64_t last_panel) const;

  std::string name_;
  DType type_ = DType::f32;
  int64_t d_out_ = 0, d_in_ = 0;
  FileRows file_rows_;
  RowOrder order_;
  std::shared_ptr<const uint8_t> panels_;
  size_t panel_bytes_ = 0;
};

}  // namespace liuli
