#include "trace/lens.h"

#include <algorithm>
#include <cmath>

namespace liuli {

bool LastTokenProbe::wants(const Place& place) const {
  switch (place.point) {
    case Point::embed:
    case Point::resid_pre:
    case Point::attn_out:
    case Point::mlp_out:
    case Point::resid_post:
      return true;
    default:
      return false;
  }
}

void LastTokenProbe::see(const ProbedValue& value) {
  const float* last = value.rows.row(value.rows.n - 1);
  const RowValues row(last, last + value.rows.width);
  auto keep = [&](std::vector<RowValues>& rows) {
    rows.resize(std::max(rows.size(), static_cast<size_t>(value.place.layer) + 1));
    rows[static_cast<size_t>(value.place.layer)] = row;
  };
  if (value.place.point == Point::embed) embed = row;
  if (value.place.point == Point::resid_pre && value.place.layer == 0) first_norm_input = row;
  if (value.place.point == Point::attn_out) keep(attn_out);
  if (value.place.point == Point::mlp_out) keep(mlp_out);
  if (value.place.point == Point::resid_post) keep(resid_post);
}

Rows lens_logits(const Model& model, Runner& runner, const std::vector<std::vector<float>>& rows,
                 ProductClass product_class) {
  runner.scratch.release({});
  OpContext ops = make_context(runner, product_class, model.cache_form);
  Step s(ops);
  Rows x = make_rows(runner.scratch, static_cast<int64_t>(rows.size()), model.config.d_model);
  for (size_t i = 0; i < rows.size(); i++)
    std::copy(rows[i].begin(), rows[i].end(), x.row(static_cast<int64_t>(i)));
  return unembed(model, s, x);
}

double l2_norm(const std::vector<float>& row) {
  double sum = 0;
  for (float v : row) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum);
}

}  // namespace liuli
