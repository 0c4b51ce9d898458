#include "model/panel_cache.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "liuli/error.h"

namespace liuli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kStepBytes = int64_t{64} << 20;

// What a panel file of this model says of itself.
PanelFileHeader header_of(const Model& model, const WeightSource& source) {
  PanelFileHeader header{LIULI_VERSION, source.files(), {}};
  model.for_each_matrix([&](const Matrix& m) {
    header.matrices.push_back({m.name(), m.type(), m.d_out(), m.d_in(), static_cast<int64_t>(m.run_bytes())});
  });
  return header;
}

bool has_built_rows(const Model& model) {
  bool built = false;
  model.for_each_matrix([&](const Matrix& m) { built = built || m.has_built_rows(); });
  return built;
}

// Why files are not those that were packed; "" if they are. Names may have changed.
std::string other_files(const std::vector<WeightFile>& packed, const std::vector<WeightFile>& now) {
  if (packed.size() != now.size())
    return fmt::format("was packed from {} files, the model has {}", packed.size(), now.size());
  for (size_t i = 0; i < now.size(); i++) {
    if (packed[i].bytes != now[i].bytes)
      return fmt::format("was packed from {} bytes, {} has {}", packed[i].bytes, now[i].path, now[i].bytes);
    if (packed[i].modified_ns != now[i].modified_ns)
      return fmt::format("was packed before {} was last written to or copied", now[i].path);
  }
  return "";
}

std::string text_of(const PackedMatrix& m) {
  return fmt::format("{} {} [{}, {}] of {} bytes", m.name, dtype_info(m.type).name, m.d_out, m.d_in, m.bytes);
}

std::string other_matrices(const std::vector<PackedMatrix>& packed, const std::vector<PackedMatrix>& now) {
  if (packed.size() != now.size())
    return fmt::format("holds {} matrices, the model has {}", packed.size(), now.size());
  for (size_t i = 0; i < now.size(); i++)
    if (text_of(packed[i]) != text_of(now[i]))
      return fmt::format("holds {} where the model has {}", text_of(packed[i]), text_of(now[i]));
  return "";
}

// Whether a matrix's first and last panel are what its rows are packed to.
bool ends_match(const Matrix& m, const uint8_t* packed, AlignedBuffer& panel) noexcept {
  for (const int64_t i : {int64_t{0}, m.n_panels() - 1}) {
    std::memset(panel.data(), 0, m.panel_bytes());
    m.pack_panel(i, panel.data());
    if (std::memcmp(panel.data(), packed + static_cast<size_t>(i) * m.panel_bytes(), m.panel_bytes()) != 0)
      return false;
  }
  return true;
}

std::string other_rows(const Model& model, const WeightSource& source, const PanelFile& file,
                       ThreadPool& pool) {
  std::vector<const Matrix*> matrices;
  size_t longest = 0;
  model.for_each_matrix([&](const Matrix& m) {
    matrices.push_back(&m);
    longest = std::max(longest, m.panel_bytes());
  });
  std::vector<AlignedBuffer> panels;
  for (int i = 0; i < pool.size(); i++) panels.emplace_back(longest);
  std::atomic<int64_t> different{-1};
  pool.parallel_for(static_cast<int64_t>(matrices.size()), [&](int64_t begin, int64_t end, int thread) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); i++) {
      const Matrix& m = *matrices[i];
      if (m.has_built_rows()) continue;
      const auto packed = file.panels(file.header().matrices[i]);
      if (!ends_match(m, packed.get(), panels[static_cast<size_t>(thread)]))
        different = static_cast<int64_t>(i);
      if (const TensorInfo* tensor = source.find(m.name())) source.give_back(*tensor);
    }
  });
  if (different < 0) return "";
  return fmt::format("holds other rows of {}", matrices[static_cast<size_t>(different.load())]->name());
}

std::string why_other(const Model& model, const WeightSource& source, const PanelFile& file,
                      ThreadPool& pool) {
  const PanelFileHeader& packed = file.header();
  const PanelFileHeader now = header_of(model, source);
  if (std::string why = other_files(packed.files, now.files); !why.empty()) return why;
  if (packed.liuli != now.liuli && has_built_rows(model))
    return fmt::format("was packed by Liuli {}, this is {}", packed.liuli, now.liuli);
  if (std::string why = other_matrices(packed.matrices, now.matrices); !why.empty()) return why;
  return other_rows(model, source, file, pool);
}

}  // namespace

std::string panel_path(const WeightSource& source) {
  fs::path path = source.path();
  if (!path.has_filename() && path.has_relative_path()) path = path.parent_path();  // "folder/"
  // "." and ".." have no name that something could lie beside.
  if (path.filename() == "." || path.filename() == "..") path = fs::weakly_canonical(path);
  return path.string() + ".panels";
}

PanelFile open_panels(const Model& model, const WeightSource& source, ThreadPool& pool,
                      const std::string& path) {
  PanelFile file(path);
  const std::string why = why_other(model, source, file, pool);
  if (why.empty()) return file;
  const std::string output = path == panel_path(source) ? "" : " -o " + path;
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}; `liuli pack {}{}` writes one that fits", path,
                                                       why, source.path(), output));
}

void map_panels(Model& model, const PanelFile& file, ThreadPool& pool,
                const std::function<void(int64_t, int64_t)>& progress) {
  const int64_t begin = file.data_begin(), total = file.file_bytes() - begin;
  constexpr auto kPiece = static_cast<int64_t>(AlignedBuffer::kHugePage);
  for (int64_t done = 0; done < total;) {
    const int64_t step = std::min(kStepBytes, total - done);
    std::atomic<bool> readable{true};
    pool.parallel_for((step + kPiece - 1) / kPiece, [&](int64_t first, int64_t last, int) {
      const int64_t at = done + first * kPiece, bytes = std::min(step, last * kPiece) - first * kPiece;
      if (!file.populate(begin + at, bytes)) readable = false;
    });
    if (!readable)
      throw Error(ErrorCode::io_error, fmt::format("{}: cannot be read between bytes {} and {}", file.path(),
                                                   begin + done, begin + done + step));
    done += step;
    if (progress) progress(done, total);
  }
  auto packed = file.header().matrices.begin();
  model.for_each_matrix([&](Matrix& m) { m.use_panels(file.panels(*packed++)); });
  model.panel_file = file.path();
}

void write_panels(Model& model, const WeightSource& source, ThreadPool& pool, const std::string& path,
                  const std::function<void(const std::string&, int64_t)>& start,
                  const std::function<void(int64_t, int64_t)>& progress) {
  PanelFileWriter writer(path, header_of(model, source));
  if (start) start(path, writer.file_bytes());
  const RowsCopied give_back = [&](const uint8_t* rows, int64_t n) { source.give_back_bytes(rows, n); };
  int64_t total = 0, done = 0, longest = 0;
  model.for_each_matrix([&](const Matrix& m) {
    total += static_cast<int64_t>(m.run_bytes());
    longest = std::max(longest, static_cast<int64_t>(m.panel_bytes()));
  });
  AlignedBuffer buffer(static_cast<size_t>(std::max(longest, kStepBytes)));
  model.for_each_matrix([&](Matrix& m) {
    m.hold_rows();
    const int64_t together = static_cast<int64_t>(buffer.size() / m.panel_bytes());
    for (int64_t first = 0; first < m.n_panels(); first += together) {
      const int64_t last = std::min(m.n_panels(), first + together);
      const size_t bytes = static_cast<size_t>(last - first) * m.panel_bytes();
      std::memset(buffer.data(), 0, bytes);
      m.pack_panels(pool, first, last, buffer.data(), give_back);
      writer.append(buffer.data(), bytes);
      done += static_cast<int64_t>(bytes);
      if (progress) progress(done, total);
    }
    if (const TensorInfo* tensor = source.find(m.name())) source.give_back(*tensor);
    m = {};
  });
  writer.finish();
}

}  // namespace liuli
