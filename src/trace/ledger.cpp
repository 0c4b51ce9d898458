#include "trace/ledger.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace liuli {
namespace {

std::span<const float> row_of(const StreamRows& rows, size_t i, size_t n) {
  const size_t width = rows.values.size() / n;
  return rows.values.subspan(i * width, width);
}

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t j = 0; j < a.size(); j++) sum += static_cast<double>(a[j]) * static_cast<double>(b[j]);
  return sum;
}

double median_magnitude(std::span<const float> row) {
  std::vector<float> magnitudes;
  for (const float v : row) magnitudes.push_back(std::fabs(v));
  const auto middle = magnitudes.begin() + static_cast<ptrdiff_t>(magnitudes.size() / 2);
  std::nth_element(magnitudes.begin(), middle, magnitudes.end());
  return static_cast<double>(*middle);
}

void append_coordinates(std::span<const float> row, const std::vector<int>& coordinates,
                        std::vector<double>& out) {
  for (const int j : coordinates) out.push_back(static_cast<double>(row[static_cast<size_t>(j)]));
}

double largest_difference(const std::vector<StreamRows>& terms, const StreamRows& final) {
  std::vector<double> sum(final.values.size());
  for (const StreamRows& term : terms)
    for (size_t j = 0; j < sum.size(); j++) sum[j] += static_cast<double>(term.values[j]);
  double worst = 0;
  for (size_t j = 0; j < sum.size(); j++)
    worst = std::max(worst, std::fabs(sum[j] - static_cast<double>(final.values[j])));
  return worst;
}

// The term up to a block that moved a coordinate most.
std::string writer_of(const std::vector<StreamRows>& terms, int last_layer, size_t i, size_t n,
                      size_t coordinate) {
  const StreamRows* largest = nullptr;
  double moved = -1;
  for (const StreamRows& term : terms) {
    if (term.layer > last_layer) continue;
    const double by = std::fabs(static_cast<double>(row_of(term, i, n)[coordinate]));
    if (by > moved) {
      moved = by;
      largest = &term;
    }
  }
  return largest == nullptr ? "" : largest->name;
}

}  // namespace

LedgerReport make_ledger(const std::vector<int>& positions, const std::vector<StreamRows>& terms,
                         const StreamRows& final, const std::vector<int>& coordinates) {
  LedgerReport report;
  report.positions = positions;
  report.coordinates = coordinates;
  const size_t n = positions.size();
  for (size_t i = 0; i < n; i++) {
    const auto row = row_of(final, i, n);
    report.final_norm.push_back(std::sqrt(dot(row, row)));
    append_coordinates(row, coordinates, report.final_coordinates);
    for (const float v : row)
      report.largest_value = std::max(report.largest_value, std::fabs(static_cast<double>(v)));
  }
  for (const StreamRows& term : terms) {
    LedgerTerm line{term.name, term.layer, {}, {}, {}, {}};
    for (size_t i = 0; i < n; i++) {
      const auto row = row_of(term, i, n);
      const double norm = std::sqrt(dot(row, row)), along = dot(row, row_of(final, i, n)),
                   final_norm = report.final_norm[i];
      line.norm.push_back(norm);
      line.cosine.push_back(norm > 0 && final_norm > 0 ? along / (norm * final_norm) : 0);
      line.share.push_back(final_norm > 0 ? along / (final_norm * final_norm) : 0);
      append_coordinates(row, coordinates, line.coordinates);
    }
    report.terms.push_back(std::move(line));
  }
  report.largest_difference = largest_difference(terms, final);
  return report;
}

std::vector<MassiveActivation> find_massive(const std::vector<int>& positions,
                                            const std::vector<StreamRows>& streams,
                                            const std::vector<StreamRows>& terms, double ratio) {
  constexpr double kPublishedValue = 100, kPublishedRatio = 1000;
  const size_t n = positions.size();
  std::map<std::pair<size_t, size_t>, MassiveActivation> found;
  for (const StreamRows& stream : streams)
    for (size_t i = 0; i < n; i++) {
      const auto row = row_of(stream, i, n);
      const double median = median_magnitude(row);
      for (size_t j = 0; j < row.size(); j++) {
        const double magnitude = std::fabs(static_cast<double>(row[j]));
        if (median <= 0 || magnitude < ratio * median) continue;
        auto [entry, is_new] = found.try_emplace({i, j});
        MassiveActivation& massive = entry->second;
        if (is_new) {
          massive.position = positions[i];
          massive.coordinate = static_cast<int>(j);
          massive.first_layer = stream.layer;
        }
        massive.last_layer = stream.layer;
        massive.meets_published_bound |= magnitude > kPublishedValue && magnitude > kPublishedRatio * median;
        if (magnitude <= std::fabs(massive.value)) continue;
        massive.peak_layer = stream.layer;
        massive.value = static_cast<double>(row[j]);
        massive.median = median;
        massive.ratio = magnitude / median;
      }
    }
  std::vector<MassiveActivation> list;
  for (auto& [place, massive] : found) {
    massive.written_by = writer_of(terms, massive.peak_layer, place.first, n, place.second);
    list.push_back(massive);
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return std::fabs(a.value) > std::fabs(b.value); });
  return list;
}

}  // namespace liuli
