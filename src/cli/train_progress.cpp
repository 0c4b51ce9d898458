#include "cli/train_progress.h"

#include <cstdio>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/text_table.h"

namespace liuli::cli {
namespace {

constexpr double kRedraw = 0.15, kPlainEvery = 5;  // seconds between lines on a terminal, and elsewhere

std::string time_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 100) return fmt::format("{} s", whole);
  if (whole < 6000) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

int error_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

std::string line_of(const TrainProgress& p) {
  std::string line =
      fmt::format("step {}/{}  loss {:.4f} ({:.4f})", p.step, p.steps, p.loss, p.smoothed_loss);
  if (p.held_out_loss) line += fmt::format("  held out {:.4f}", *p.held_out_loss);
  return line + fmt::format("  lr {:.2e}  |g| {:.3f}  {:.0f} tokens/s  {} left", p.learning_rate,
                            p.gradient_norm, p.tokens_per_second, time_text(p.seconds_left));
}

}  // namespace

TrainDisplay::TrainDisplay() : terminal_(isatty(STDERR_FILENO) == 1) {}
TrainDisplay::~TrainDisplay() { clear(); }

void TrainDisplay::clear() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
  drawn_ = false;
}

void TrainDisplay::note(const std::string& text) {
  clear();
  fmt::print(stderr, "{}\n", text);
}

void TrainDisplay::plan(const TrainPlan& p) {
  std::string learning;
  if (p.learning < p.parameters) learning = fmt::format(", {} of them learning", count_text(p.learning));
  note(fmt::format("{}: {} parameters{}, vocabulary {}; {} tokens to learn from, {} held out", p.family,
                   count_text(p.parameters), learning, p.vocab_size, count_text(p.train_tokens),
                   count_text(p.held_out_tokens)));
  note(fmt::format("{} {} steps of {} tokens",
                   p.first_step > 0 ? fmt::format("from step {} to", p.first_step) : "", p.steps,
                   p.tokens_per_step));
}

void TrainDisplay::step(const TrainProgress& p) {
  const auto now = Clock::now();
  const double since = std::chrono::duration<double>(now - last_draw_).count();
  if (since < (terminal_ ? kRedraw : kPlainEvery) && p.step < p.steps) return;
  last_draw_ = now;
  if (!terminal_) return note(line_of(p));
  std::string line = line_of(p) + "  " + p.sparkline;
  // A line that wraps would not be rewritten but pile up.
  while (display_width(line) >= error_columns() && !line.empty()) {
    line.pop_back();
    while (!line.empty() && (line.back() & 0xC0) == 0x80) line.pop_back();
  }
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
  drawn_ = true;
}

void TrainDisplay::evaluation(int64_t step, double loss) {
  if (!terminal_) note(fmt::format("step {}  held-out loss {:.4f}", step, loss));
}

void TrainDisplay::sample(int64_t step, const std::string& text) {
  note(fmt::format("── sample after step {} ──\n{}", step, text));
}

void TrainDisplay::checkpoint(int64_t step, const std::string& path) {
  if (!terminal_) note(fmt::format("step {}  checkpoint {}", step, path));
}

}  // namespace liuli::cli
