#include "tokenizers/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <fmt/format.h>

#include "liuli/error.h"

namespace liuli {

struct Regex::Program {
  pcre2_code* code = nullptr;
  ~Program() { pcre2_code_free(code); }
};

namespace {

std::string error_text(int code) {
  PCRE2_UCHAR text[128] = {};
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

// One per thread: matching needs room that a compiled pattern, shared between threads, cannot hold.
struct MatchRoom {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  ~MatchRoom() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
  }
};

MatchRoom& match_room() {
  thread_local MatchRoom room;
  return room;
}

}  // namespace

Regex::Regex(const std::string& pattern) : pattern_(pattern), program_(std::make_unique<Program>()) {
  const std::string translated = pcre_pattern(pattern);
  int error = 0;
  PCRE2_SIZE at = 0;
  // Oniguruma's ^ and $ are anchors of lines.
  constexpr uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_UTF_CHECK;
  program_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(), kOptions,
                                 &error, &at, nullptr);
  if (program_->code == nullptr)
    throw Error(ErrorCode::unsupported,
                fmt::format("regular expression \"{}\": {} at byte {}", pattern, error_text(error), at));
  pcre2_jit_compile(program_->code, PCRE2_JIT_COMPLETE);  // where there is no JIT the interpreter does it
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;

bool Regex::find(std::string_view text, size_t from, size_t& begin, size_t& end) const {
  MatchRoom& room = match_room();
  // Sound patterns step back over a run once or twice: 16 steps per byte leave room, and keep a hostile
  // pattern from taking exponential time.
  const size_t limit = 20'000 + 16 * (text.size() - from);
  pcre2_set_match_limit(room.context, static_cast<uint32_t>(std::min<size_t>(limit, UINT32_MAX)));
  pcre2_set_heap_limit(room.context, 64 << 10);  // KiB
  const int found = pcre2_match(program_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                PCRE2_NO_UTF_CHECK, room.data, room.context);
  if (found == PCRE2_ERROR_NOMATCH) return false;
  if (found < 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("regular expression \"{}\" gives up on a text of {} bytes: {}", pattern_,
                            text.size(), error_text(found)));
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(room.data);
  begin = bounds[0];
  end = bounds[1];
  if (begin < from || end < begin)
    throw Error(ErrorCode::unsupported, fmt::format("regular expression \"{}\" matches backwards", pattern_));
  return true;
}

}  // namespace liuli
