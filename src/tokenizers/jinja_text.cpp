#include "tokenizers/jinja_text.h"

#include <algorithm>

namespace liuli::jinja {

Text::Text(std::string bytes, bool from_user) : bytes_(std::move(bytes)) {
  if (from_user) mark(0, bytes_.size());
}

// Marks arrive in ascending order only (append works at the end), so touching the last range is the one merge
// needed.
void Text::mark(size_t begin, size_t end) {
  if (begin == end) return;
  if (!user_.empty() && user_.back().end == begin) {
    user_.back().end = end;
  } else {
    user_.push_back({begin, end});
  }
}

void Text::append(std::string_view bytes, bool from_user) {
  const size_t begin = bytes_.size();
  bytes_.append(bytes);
  if (from_user) mark(begin, bytes_.size());
}

void Text::append_slice(const Text& other, size_t begin, size_t end) {
  const size_t shift = bytes_.size();
  bytes_.append(other.bytes_, begin, end - begin);
  auto range = std::lower_bound(other.user_.begin(), other.user_.end(), begin,
                                [](const Range& r, size_t at) { return r.end <= at; });
  for (; range != other.user_.end() && range->begin < end; ++range) {
    mark(shift + std::max(range->begin, begin) - begin, shift + std::min(range->end, end) - begin);
  }
}

Text Text::slice(size_t begin, size_t end) const {
  Text part;
  part.append_slice(*this, begin, end);
  return part;
}

}  // namespace liuli::jinja
