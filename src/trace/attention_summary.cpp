#include "trace/attention_summary.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace liuli {

AttentionSummary::AttentionSummary(std::vector<int> ids) : ids_(std::move(ids)), earlier_(ids_.size()) {
  std::map<int, std::vector<int>> seen;
  for (size_t i = 0; i < ids_.size(); i++) {
    earlier_[i] = seen[ids_[i]];
    seen[ids_[i]].push_back(static_cast<int>(i));
  }
}

void AttentionSummary::see(const ProbedValue& value) {
  for (int64_t head = 0; head < value.heads; head++) {
    HeadSummary& summary = heads_[{value.place.layer, head}];
    if (summary.name.empty()) {
      const std::string name = value.place.name();  // "blocks.3.attn.pattern"
      summary.name = fmt::format("{}.head.{}", name.substr(0, name.rfind('.')), head);
      summary.layer = value.place.layer;
      summary.head = static_cast<int>(head);
    }
    for (int64_t i = 0; i < value.rows.n; i++)
      add(summary, value.first_position + i, value.rows.row(i) + head * value.head_stride, value.rows.width);
  }
}

void AttentionSummary::add(HeadSummary& head, int64_t position, const float* row, int64_t n_keys) const {
  for (int64_t key = 0; key < n_keys; key++) {
    const auto p = static_cast<double>(row[key]);
    if (p <= 0) continue;
    head.entropy -= p * std::log(p);
    head.distance += p * static_cast<double>(std::abs(position - key));
  }
  auto at = [&](int64_t key) { return static_cast<double>(row[key]); };
  head.on_itself += at(position);
  if (position > 0) {
    head.on_first += at(0);
    head.on_previous += at(position - 1);
  }
  const std::vector<int>& earlier = earlier_[static_cast<size_t>(position)];
  for (const int occurrence : earlier) {
    head.duplicate += at(occurrence);
    head.prefix_match += at(occurrence + 1);
  }
  if (!earlier.empty()) head.induction += at(earlier.back() + 1);
}

HeadsReport AttentionSummary::report() const {
  HeadsReport report;
  report.ids = ids_;
  for (const auto& earlier : earlier_) report.repeated_positions += !earlier.empty();
  const auto n = static_cast<double>(ids_.size()), behind = std::max(1.0, n - 1),
             repeated = std::max(1.0, static_cast<double>(report.repeated_positions));
  for (const auto& [unused, sums] : heads_) {
    HeadSummary head = sums;
    for (double* mean : {&head.entropy, &head.on_itself, &head.distance}) *mean /= n;
    for (double* mean : {&head.on_first, &head.on_previous}) *mean /= behind;
    for (double* mean : {&head.induction, &head.prefix_match, &head.duplicate}) *mean /= repeated;
    report.heads.push_back(std::move(head));
  }
  return report;
}

}  // namespace liuli
