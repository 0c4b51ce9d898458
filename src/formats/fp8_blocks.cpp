#include "formats/fp8_blocks.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/fp8.h"
#include "formats/byte_cursor.h"
#include "liuli/error.h"

namespace liuli {
namespace {

constexpr int64_t kBlock = 128;

int64_t blocks(int64_t n) { return n / kBlock + (n % kBlock != 0 ? 1 : 0); }
int64_t rows_of(const Fp8Matrix& m) { return m.codes->shape[0]; }
int64_t columns_of(const Fp8Matrix& m) { return m.codes->shape[1]; }

float scale_at(const Fp8Matrix& m, int64_t row, int64_t block) {
  float scale;
  const int64_t index = row / kBlock * blocks(columns_of(m)) + block;
  std::memcpy(&scale, m.scales->data + index * 4, sizeof scale);
  return scale;
}

/// [scale f32][128 codes] for each block of the row.
void write_blocks(const Fp8Matrix& m, int64_t row, uint8_t* out) {
  const uint8_t* codes = m.codes->data + row * columns_of(m);
  for (int64_t block = 0; block < columns_of(m) / kBlock; block++, out += 4 + kBlock) {
    const float scale = scale_at(m, row, block);
    std::memcpy(out, &scale, sizeof scale);
    std::memcpy(out + 4, codes + block * kBlock, kBlock);
  }
}

void write_floats(const Fp8Matrix& m, int64_t row, uint8_t* out) {
  const uint8_t* codes = m.codes->data + row * columns_of(m);
  for (int64_t c = 0; c < columns_of(m); c++, out += 4) {
    const float value = e4m3_to_f32(codes[c]) * scale_at(m, row, c / kBlock);
    std::memcpy(out, &value, sizeof value);
  }
}

std::shared_ptr<uint8_t> allocate(const std::string& name, int64_t bytes) {
  try {
    return std::shared_ptr<uint8_t>(new uint8_t[static_cast<size_t>(bytes)],
                                    std::default_delete<uint8_t[]>());
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("tensor {} needs {} bytes of memory for its FP8 rows", quoted_name(name), bytes));
  }
}

bool has_section(const Metadata& config, std::string_view section) {
  if (config.has(section)) return true;  // not an object, but not nothing
  for (const std::string& key : config.keys())
    if (key.size() > section.size() && key.compare(0, section.size(), section) == 0 &&
        key[section.size()] == '.')
      return true;
  return false;
}

[[noreturn]] void refuse(const std::string& path, const char* key, const std::string& stored) {
  throw Error(
      ErrorCode::unsupported,
      fmt::format(
          "{}: config.json has {} {}; of quantised folders Liuli reads quant_method \"fp8\" with fmt "
          "\"e4m3\", weight_block_size [128, 128] and activation_scheme \"dynamic\" (and every GGUF type)",
          path, key, stored));
}

}  // namespace

bool announces_fp8_blocks(const std::string& path, const Metadata& config) {
  if (has_section(config, "compression_config")) refuse(path, "a", "compression_config");
  if (!has_section(config, "quantization_config")) return false;
  const auto expect = [&](const char* key, const char* wanted, bool optional) {
    const std::string full = std::string("quantization_config.").append(key);
    if (optional && !config.has(full)) return;
    if (config.json(full, 8) != wanted) refuse(path, full.c_str(), config.json(full, 8));
  };
  expect("quant_method", "\"fp8\"", false);
  expect("fmt", "\"e4m3\"", true);
  expect("weight_block_size", "[128, 128]", false);
  expect("activation_scheme", "\"dynamic\"", true);
  return true;
}

std::optional<std::string> fp8_problem(const Fp8Matrix& m) {
  if (m.codes->shape.size() != 2)
    return fmt::format("is stored as F8_E4M3 {}, not as a matrix", shape_text(m.codes->shape));
  if (m.scales == nullptr)
    return fmt::format("is stored as F8_E4M3, but there is no {}",
                       quoted_name(std::string(m.codes->name).append(kScaleSuffix)));
  const std::vector<int64_t> wanted{blocks(rows_of(m)), blocks(columns_of(m))};
  if (m.scales->dtype == "F32" && m.scales->shape == wanted) return std::nullopt;
  return fmt::format("is stored as F8_E4M3 {}, which takes scales F32 {}, but {} is {} {}",
                     shape_text(m.codes->shape), shape_text(wanted), quoted_name(m.scales->name),
                     m.scales->dtype, shape_text(m.scales->shape));
}

DType fp8_type(const Fp8Matrix& m) { return columns_of(m) % kBlock == 0 ? DType::f8_e4m3_b128 : DType::f32; }

std::shared_ptr<const uint8_t> build_fp8_rows(const Fp8Matrix& m) {
  const DType type = fp8_type(m);
  const int64_t bytes = row_bytes(type, columns_of(m));
  std::shared_ptr<uint8_t> rows = allocate(m.codes->name, rows_of(m) * bytes);
  if (columns_of(m) == 0) return rows;  // of such rows a file can name any number
  const auto write = type == DType::f32 ? write_floats : write_blocks;
  for (int64_t row = 0; row < rows_of(m); row++) write(m, row, rows.get() + row * bytes);
  return rows;
}

}  // namespace liuli
