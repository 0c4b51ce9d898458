// The part of a pipeline that turns pieces of text into ids.
#pragma once
#include <string_view>
#include <vector>

namespace liuli {

/// Immutable; safe to use from several threads.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  /// Appends the ids of non-empty pieces of valid UTF-8, each on its own.
  virtual void encode(const std::vector<std::string_view>& pieces, std::vector<int>& ids) const = 0;
};

}  // namespace liuli
