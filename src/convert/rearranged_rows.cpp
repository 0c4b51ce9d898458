#include "convert/rearranged_rows.h"

#include "kernels/kernels.h"

namespace liuli {

RearrangedRows::RearrangedRows(std::shared_ptr<const WeightSource> source, Arrangement arrangement,
                               int64_t columns)
    : source_(std::move(source)), arrangement_(std::move(arrangement)), columns_(columns) {
  if (!is_vector()) part_rows_ = part(0).elements() / columns;
}

const uint8_t* RearrangedRows::bytes() const {
  const Arrangement& a = arrangement_;
  const bool as_stored = a.parts.size() == 1 && !a.stored_row && !a.plus_one && a.block_rows == 0;
  return as_stored ? part(0).data : nullptr;
}

RearrangedRows::Rows RearrangedRows::stored(int64_t i) const {
  if (part(i).data != nullptr) return source_->bytes_of(part(i));
  return built_.get(i, [&] { return source_->bytes_of(part(i)); });
}

void RearrangedRows::decode_stored(int64_t i, int64_t row, float* out) const {
  const TensorInfo& t = part(i);
  const int64_t width = t.shape.back();
  kernels::decode_row(t.type, stored(i).get() + row * row_bytes(t.type, width), width, out);
}

void RearrangedRows::decode(int64_t first, int64_t n, float* out) const {
  for (int64_t i = 0; i < n; i++) {
    float* row = out + i * columns_;
    if (is_vector())
      decode_vector(row);
    else if (arrangement_.block_rows > 0)
      decode_column(first + i, row);
    else
      decode_row(first + i, row);
    if (!arrangement_.plus_one) continue;
    for (int64_t k = 0; k < columns_; k++) row[k] += 1;
  }
}

void RearrangedRows::decode_row(int64_t row, float* out) const {
  const int64_t in_part = row % part_rows_;
  decode_stored(row / part_rows_, arrangement_.stored_row ? arrangement_.stored_row(in_part) : in_part, out);
}

void RearrangedRows::decode_vector(float* out) const {
  decode_stored(0, 0, out);
  if (!arrangement_.stored_row) return;
  const std::vector<float> stored(out, out + columns_);
  for (int64_t k = 0; k < columns_; k++) out[k] = stored[static_cast<size_t>(arrangement_.stored_row(k))];
}

void RearrangedRows::decode_column(int64_t row, float* out) const {
  const int64_t width = part(0).shape.back(), block = row / width;
  const auto turned =
      turned_.get(block, [&] { return std::make_shared<const std::vector<float>>(turned_block(block)); });
  const float* column = turned->data() + row % width * columns_;
  std::copy(column, column + columns_, out);
}

std::vector<float> RearrangedRows::turned_block(int64_t block) const {
  const int64_t width = part(0).shape.back(), rows = arrangement_.block_rows;
  std::vector<float> turned(static_cast<size_t>(rows * width)), row(static_cast<size_t>(width));
  for (int64_t i = 0; i < rows; i++) {
    decode_stored(0, block * arrangement_.block_step + i, row.data());
    for (int64_t k = 0; k < width; k++)
      turned[static_cast<size_t>(k * rows + i)] = row[static_cast<size_t>(k)];
  }
  return turned;
}

void RearrangedRows::give_back() const {
  built_.forget();
  turned_.forget();
  for (const TensorInfo* info : arrangement_.parts) source_->give_back(*info);
}

}  // namespace liuli
