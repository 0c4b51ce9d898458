// Reads a model tensor by tensor, encodes its rows on every thread, writes them in order.
#include <fmt/core.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <optional>

#include "convert/encode.h"
#include "convert/imatrix.h"
#include "convert/quantize_plan.h"
#include "core/thread_pool.h"
#include "kernels/kernels.h"
#include "liuli/error.h"

namespace liuli {
namespace {

/// Values decoded at a time: 16 MiB of f32, and at most as much again for what is written and read back.
constexpr int64_t kPieceValues = int64_t{4} << 20;
constexpr float kF16Overflow = 65520;  ///< rounds to Inf

/// Squares summed over rows, in row order: the same figures for any number of threads.
struct ErrorSums {
  double error = 0, total = 0, weighted_error = 0, weighted_total = 0;

  void add(const ErrorSums& other) {
    error += other.error;
    total += other.total;
    weighted_error += other.weighted_error;
    weighted_total += other.weighted_total;
  }
};
double relative(double error, double total) { return total > 0 ? std::sqrt(error / total) : 0.0; }

/// Column weights of one tensor: of all rows, or one set per expert.
struct TensorImportance {
  std::vector<float> means;
  int64_t columns = 0, rows_per_matrix = 0;

  const float* of_row(int64_t row) const {
    if (means.empty()) return nullptr;
    const int64_t matrices = static_cast<int64_t>(means.size()) / columns;
    return means.data() + (matrices == 1 ? 0 : row / rows_per_matrix) * columns;
  }
};

TensorImportance tensor_importance(const ImportanceMatrix* matrix, const SourceTensor& tensor,
                                   const std::string& path) {
  TensorImportance importance{{}, tensor.columns(), tensor.rows()};
  if (matrix == nullptr) return importance;
  const auto found = matrix->entries.find(tensor.name);
  if (found == matrix->entries.end()) return importance;
  const ImportanceMatrix::Entry& entry = found->second;
  const int64_t stacked = tensor.shape.size() == 3 ? tensor.shape[0] : 1;
  const auto matrices = static_cast<int64_t>(entry.counts.size());
  if (static_cast<int64_t>(entry.sums.size()) != matrices * tensor.columns() ||
      (matrices != 1 && matrices != stacked))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: {} has {} × {} columns there, the model's tensor is {}", path, tensor.name, matrices,
                    static_cast<int64_t>(entry.sums.size()) / matrices, shape_text(tensor.shape)));
  importance.means = entry.means();
  importance.rows_per_matrix = tensor.rows() / matrices;
  return importance;
}

/// Some rows of a tensor on their way: decoded values, encoded bytes, and what the encoded bytes decode to.
class Piece {
 public:
  Piece(const SourceTensor& tensor, DType to, const TensorImportance& importance)
      : tensor_(tensor), to_(to), importance_(importance), row_bytes_(row_bytes(to, tensor.columns())) {}

  /// Encodes rows [first, first + n).
  void run(ThreadPool& pool, int64_t first, int64_t n) {
    const auto values = static_cast<size_t>(n * tensor_.columns());
    x_.resize(values);
    bytes_.resize(static_cast<size_t>(n * row_bytes_));
    sums_.assign(static_cast<size_t>(n), {});
    bad_.store(n);
    std::atomic<int64_t> next{0};
    // Rows are taken one by one: a thread whose CPU is busy elsewhere holds up no other.
    pool.run([&](int) {
      std::vector<float> decoded(static_cast<size_t>(tensor_.columns()));
      for (int64_t row = next++; row < n; row = next++) encode(first, row, decoded);
    });
    if (bad_ < n) refuse_row(first + bad_, bad_);
  }

  const std::vector<uint8_t>& bytes() const { return bytes_; }
  void add_errors(ErrorSums& sums) const {
    for (const ErrorSums& row : sums_) sums.add(row);
  }

 private:
  bool fits(float v) const { return std::isfinite(v) && (to_ != DType::f16 || std::fabs(v) < kF16Overflow); }

  void encode(int64_t first, int64_t row, std::vector<float>& decoded) {
    const int64_t n = tensor_.columns();
    float* x = x_.data() + row * n;
    tensor_.decode(first + row, 1, x);
    for (int64_t i = 0; i < n; i++)
      if (!fits(x[i])) return report_bad(row);
    uint8_t* out = bytes_.data() + row * row_bytes_;
    const float* weights = importance_.of_row(first + row);
    encode_row(to_, x, n, weights, out);
    kernels::decode_row(to_, out, n, decoded.data());
    sums_[static_cast<size_t>(row)] = row_errors(x, decoded.data(), weights, n);
  }

  static ErrorSums row_errors(const float* x, const float* y, const float* weights, int64_t n) {
    ErrorSums sums;
    for (int64_t i = 0; i < n; i++) {
      const double difference = double{x[i]} - y[i], square = double{x[i]} * x[i];
      const double w = weights == nullptr ? 1.0 : weights[i];
      sums.error += difference * difference;
      sums.total += square;
      sums.weighted_error += w * difference * difference;
      sums.weighted_total += w * square;
    }
    return sums;
  }

  /// Threads must not throw: the first bad row is remembered.
  void report_bad(int64_t row) {
    int64_t known = bad_.load();
    while (row < known && !bad_.compare_exchange_weak(known, row)) {
    }
  }

  [[noreturn]] void refuse_row(int64_t row, int64_t in_piece) const {
    const float* x = x_.data() + in_piece * tensor_.columns();
    int64_t column = 0;
    while (fits(x[column])) column++;
    if (std::isfinite(x[column]))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: row {} column {} is {:g}, beyond F16's ±65504 (BF16 holds it)",
                              tensor_.name, row, column, x[column]));
    throw Error(ErrorCode::corrupt_file, fmt::format("{}: row {} column {} is {}, which no type can hold",
                                                     tensor_.name, row, column, x[column]));
  }

  const SourceTensor& tensor_;
  DType to_;
  const TensorImportance& importance_;
  int64_t row_bytes_;
  std::vector<float> x_;
  std::vector<uint8_t> bytes_;
  std::vector<ErrorSums> sums_;
  std::atomic<int64_t> bad_{0};
};

/// The whole of one quantise_file() call.
class Quantizer {
 public:
  Quantizer(const QuantizeSource& source, const QuantizePlan& plan, const QuantizeSettings& settings,
            const ImportanceMatrix* importance)
      : source_(source), plan_(plan), settings_(settings), importance_(importance), pool_(settings.threads) {
    for (const SourceTensor& tensor : source.tensors) total_ += tensor.stored_bytes();
  }

  void run(GgufWriter& writer, QuantizeReport& report) {
    ErrorSums all;
    for (size_t i = 0; i < source_.tensors.size(); i++) {
      const SourceTensor& tensor = source_.tensors[i];
      if (plan_.types[i] == tensor.type && tensor.bytes != nullptr) {
        copy(tensor, writer);
      } else {
        encode(tensor, plan_.types[i], writer, report.tensors[i], all);
      }
      if (tensor.give_back) tensor.give_back();
    }
    report.error = relative(all.error, all.total);
  }

 private:
  void advance(int64_t bytes) {
    done_ += bytes;
    if (settings_.on_progress) settings_.on_progress(done_, total_);
  }

  /// A tensor that keeps its type keeps its bytes.
  void copy(const SourceTensor& tensor, GgufWriter& writer) {
    const int64_t bytes = tensor.stored_bytes();
    for (int64_t at = 0; at < bytes; at += 4 * kPieceValues) {
      const int64_t n = std::min(4 * kPieceValues, bytes - at);
      writer.append(tensor.bytes + at, static_cast<size_t>(n));
      advance(n);
    }
  }

  void encode(const SourceTensor& tensor, DType to, GgufWriter& writer, QuantizedTensor& entry,
              ErrorSums& all) {
    const TensorImportance importance = tensor_importance(importance_, tensor, settings_.imatrix);
    Piece piece(tensor, to, importance);
    ErrorSums sums;
    const int64_t rows = tensor.rows(), step = std::max<int64_t>(1, kPieceValues / tensor.columns());
    for (int64_t first = 0; first < rows; first += step) {
      const int64_t n = std::min(step, rows - first);
      piece.run(pool_, first, n);
      writer.append(piece.bytes().data(), piece.bytes().size());
      piece.add_errors(sums);
      advance(n * row_bytes(tensor.type, tensor.columns()));
    }
    entry.error = relative(sums.error, sums.total);
    if (!importance.means.empty()) entry.weighted_error = relative(sums.weighted_error, sums.weighted_total);
    all.add(sums);
  }

  const QuantizeSource& source_;
  const QuantizePlan& plan_;
  const QuantizeSettings& settings_;
  const ImportanceMatrix* importance_;
  ThreadPool pool_;
  int64_t done_ = 0, total_ = 0;
};

/// What the new file says about itself.
GgufKeys new_keys(const QuantizeSource& source, const QuantizePlan& plan, const QuantizeSettings& settings,
                  const ImportanceMatrix* importance) {
  GgufKeys keys = source.keys;
  keys.u32("general.quantization_version", 2).u32("general.file_type", plan.mix.file_type);
  if (importance == nullptr) return keys;
  keys.text("quantize.imatrix.file", std::filesystem::path(settings.imatrix).filename().string());
  if (!importance->datasets.empty()) keys.text("quantize.imatrix.dataset", importance->datasets.front());
  keys.u32("quantize.imatrix.entries_count", static_cast<uint32_t>(importance->entries.size()));
  keys.u32("quantize.imatrix.chunks_count", static_cast<uint32_t>(importance->chunk_count));
  return keys;
}

std::vector<GgufTensorSpec> tensor_specs(const QuantizeSource& source, const QuantizePlan& plan) {
  std::vector<GgufTensorSpec> specs;
  for (size_t i = 0; i < source.tensors.size(); i++)
    specs.push_back({source.tensors[i].name, plan.types[i], source.tensors[i].shape});
  return specs;
}

QuantizeReport report_of(const QuantizeSource& source, const QuantizePlan& plan) {
  QuantizeReport report;
  report.warnings = source.warnings;
  report.warnings.insert(report.warnings.end(), plan.warnings.begin(), plan.warnings.end());
  for (size_t i = 0; i < source.tensors.size(); i++) {
    const SourceTensor& tensor = source.tensors[i];
    QuantizedTensor entry{tensor.name,
                          dtype_info(tensor.type).name,
                          dtype_info(plan.types[i]).name,
                          tensor.shape,
                          tensor.stored_bytes(),
                          row_bytes(plan.types[i], tensor.elements()),
                          0,
                          std::nullopt};
    report.parameters += tensor.elements();
    report.from_bytes += entry.from_bytes;
    report.to_bytes += entry.to_bytes;
    report.tensors.push_back(std::move(entry));
  }
  return report;
}

std::optional<ImportanceMatrix> importance_of(const QuantizeSettings& settings) {
  if (settings.imatrix.empty()) return std::nullopt;
  return read_imatrix(settings.imatrix);
}

/// Matrices that get fewer than 8 bits and no weights although a matrix was given.
void warn_about_unweighted(const QuantizeSource& source, const QuantizePlan& plan,
                           const ImportanceMatrix& importance, std::vector<std::string>& warnings) {
  std::string first;
  int n = 0;
  for (size_t i = 0; i < source.tensors.size(); i++) {
    if (dtype_info(plan.types[i]).block == 1 || importance.entries.contains(source.tensors[i].name)) continue;
    if (n++ == 0) first = source.tensors[i].name;
  }
  if (n > 0)
    warnings.push_back(
        fmt::format("{} quantised tensors have no entry in the importance matrix ({}{}): every column "
                    "counts the same there",
                    n, first, n > 1 ? ", …" : ""));
}

void refuse_same_file(const std::string& input, const std::string& output) {
  std::error_code ignored;
  if (std::filesystem::equivalent(input, output, ignored))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: is the input, too; name another output", output));
}

}  // namespace

QuantizeReport plan_quantize(const std::string& input, const QuantizeSettings& settings) {
  const QuantizeSource source = open_quantize_source(input, !settings.no_tokenizer);
  const QuantizePlan plan = make_quantize_plan(source, settings);
  const auto importance = importance_of(settings);
  QuantizeReport report = report_of(source, plan);
  const GgufKeys keys = new_keys(source, plan, settings, importance ? &*importance : nullptr);
  report.file_bytes = GgufWriter::file_bytes(input, keys, tensor_specs(source, plan));
  return report;
}

QuantizeReport quantize_file(const std::string& input, const std::string& output,
                             const QuantizeSettings& settings) {
  refuse_same_file(input, output);
  const QuantizeSource source = open_quantize_source(input, !settings.no_tokenizer);
  const QuantizePlan plan = make_quantize_plan(source, settings);
  const auto importance = importance_of(settings);
  const ImportanceMatrix* matrix = importance ? &*importance : nullptr;
  QuantizeReport report = report_of(source, plan);
  if (matrix != nullptr) warn_about_unweighted(source, plan, *matrix, report.warnings);
  const GgufKeys keys = new_keys(source, plan, settings, matrix);
  const auto specs = tensor_specs(source, plan);
  report.file_bytes = GgufWriter::file_bytes(output, keys, specs);
  GgufWriter writer(output, keys, specs);
  Quantizer(source, plan, settings, matrix).run(writer, report);
  writer.finish();
  return report;
}

}  // namespace liuli
