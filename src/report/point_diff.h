// The inner values of two runs side by side, a few positions at a time: one run's are kept, the other's are
// compared as they come.
#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "liuli/diff.h"
#include "model/probe.h"
#include "trace/point_selection.h"

namespace liuli {

/// A place as a key of a map.
using PlaceKey = std::tuple<Stack, int, Point, int>;
inline PlaceKey key_of(const Place& place) { return {place.stack, place.layer, place.point, place.expert}; }

/// What one run showed at some places since the last clear(), in its order.
class PlaceValues : public Probe {
 public:
  struct Value {
    int64_t n = 0, width = 0, heads = 0;
    std::vector<float> values;  ///< [heads][n][width]
    std::vector<int> tokens;    ///< of each row, counted in this pass

    const float* row(int64_t head, int64_t i) const { return values.data() + (head * n + i) * width; }
  };

  void add_place(const Place& place) { seen_[key_of(place)]; }
  bool wants(const Place& place) const override { return seen_.count(key_of(place)) != 0; }
  void see(const ProbedValue& value) override;
  bool may_change(const Place&) const override { return false; }
  void clear();

  /// The index-th value shown at a place, or null.
  const Value* find(const Place& place, size_t index) const;

 private:
  std::map<PlaceKey, std::vector<Value>> seen_;
};

/// One position of one point, added up over heads.
struct PositionSums {
  double difference_squares = 0, reference_squares = 0;
  double largest = 0;        ///< |a − b|, …
  int64_t head = 0, at = 0;  ///< … and where it is
  float a = 0, b = 0;

  void add(const float* row_a, const float* row_b, int64_t n, int64_t in_head);
};

/// Sums of one point over all positions.
struct PointTotals {
  Place place;
  double difference_squares = 0, reference_squares = 0, largest = 0;
  PointDiff diff;
  size_t next = 0;  ///< how many values the running chunk has shown here
};

/// Listens to the reference and compares with what the other run showed in the same pass.
class PointComparison : public Probe {
 public:
  /// Compares the places both models have in the same shape. reference must outlive this.
  PointComparison(const ModelConfig& config, const ModelConfig& reference);

  const std::vector<Place>& places() const { return places_; }
  PlaceValues& other() { return other_; }  ///< the listener of the other run, which goes first

  bool wants(const Place& place) const override { return totals_.count(key_of(place)) != 0; }
  void see(const ProbedValue& value) override;
  bool may_change(const Place&) const override { return false; }
  void next_chunk();  ///< before both runs take the same next positions

  std::vector<PointDiff> take();

 private:
  void add_position(PointTotals& totals, int64_t position, const PositionSums& sums) const;

  const ModelConfig* config_;
  std::vector<Place> places_;
  PlaceValues other_;
  std::map<PlaceKey, PointTotals> totals_;
};

/// Why the inner values of two models are not to be compared (layers or widths differ), or "".
std::string shape_difference(const ModelConfig& config, const ModelConfig& reference);

/// Whether a point may open a divergence: all but the means of norms, see DiffReport.
bool may_diverge(Point point);

}  // namespace liuli
