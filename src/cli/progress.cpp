#include "cli/progress.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/text_table.h"

namespace liuli::cli {
namespace {

constexpr double kPatience = 0.3;      // seconds of work before a bar appears
constexpr double kRedrawPeriod = 0.1;  // seconds
constexpr int kBarWidth = 30;

std::string rate_text(ProgressUnit unit, double per_second) {
  if (unit == ProgressUnit::bytes) return size_text(static_cast<int64_t>(per_second)) + "/s";
  const char* name = unit == ProgressUnit::tokens  ? "tokens"
                     : unit == ProgressUnit::texts ? "texts"
                                                   : "patches";
  return fmt::format("{:.0f} {}/s", per_second, name);
}

std::string time_text(double seconds) {
  const int64_t whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s left", whole);
  return fmt::format("{} min {:02} s left", whole / 60, whole % 60);
}

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Progress::Progress(std::string label, ProgressUnit unit)
    : label_(std::move(label)),
      unit_(unit),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      last_draw_(start_) {}

Progress::~Progress() { clear(); }

void Progress::update(int64_t done, int64_t total) {
  if (!terminal_ || total <= 0) return;
  const auto now = Clock::now();
  const double elapsed = seconds_between(start_, now);
  if (elapsed < kPatience || seconds_between(last_draw_, now) < kRedrawPeriod) return;
  last_draw_ = now;
  draw(std::clamp<int64_t>(done, 0, total), total, elapsed);
}

void Progress::draw(int64_t done, int64_t total, double seconds) {
  const double fraction = static_cast<double>(done) / static_cast<double>(total);
  const int filled = static_cast<int>(fraction * kBarWidth);
  std::string line = fmt::format("\r\033[K{}  [{:#<{}}{:.<{}}] {:3.0f} %", label_, "", filled, "",
                                 kBarWidth - filled, fraction * 100);
  if (done > 0) {
    const double rate = static_cast<double>(done) / seconds;
    line +=
        fmt::format("  {}  {}", rate_text(unit_, rate), time_text(static_cast<double>(total - done) / rate));
  }
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace liuli::cli
