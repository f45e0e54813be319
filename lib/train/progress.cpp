#include "lib/train/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "lib/base/os/terminal.h"

namespace clnet::train {

namespace {

using namespace std::chrono_literals;

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string bar(std::int64_t done, std::int64_t all) {
  constexpr std::int64_t width = 20;
  const auto filled = static_cast<std::size_t>(std::clamp<std::int64_t>(done * width / std::max<std::int64_t>(all, 1), 0, width));
  std::string text(width, ' ');
  std::fill_n(text.begin(), filled, '=');
  if (filled < text.size()) text[filled] = '>';
  return text;
}

}  // namespace

Progress::Progress(bool on, std::int64_t total_epochs, std::int64_t total_steps, const Unit& unit)
    : on_(on),
      terminal_(on && os::is_terminal(os::Stream::error)),
      total_epochs_(total_epochs),
      total_steps_(total_steps),
      unit_(unit),
      compile_pace_(terminal_ ? 500ms : 1000ms) {}

Progress::~Progress() {
  if (drawn_ > 0) std::fputc('\n', stderr);
}

void Progress::draw(const std::string& line) {
  // A line longer than the terminal would wrap and could not be drawn over.
  const auto shown = line.substr(0, os::terminal_columns() - 1);
  fmt::print(stderr, "\r{:<{}}", shown, std::max(drawn_, shown.size()));
  std::fflush(stderr);
  drawn_ = shown.size();
}

std::string Progress::speed(double samples_per_second) const {
  return fmt::format("{:.0f} {}/s", samples_per_second * static_cast<double>(unit_.per_sample), unit_.name);
}

void Progress::step(const Now& now) {
  if (!terminal_) return;
  const auto time = std::chrono::steady_clock::now();
  const bool has_length = now.epoch_length > 0;
  if (last_ && time - *last_ < 100ms && (!has_length || now.epoch_steps < now.epoch_length)) return;
  last_ = time;
  std::string line = fmt::format("epoch {}", now.epoch);
  if (total_epochs_ > 0) line += fmt::format("/{}", total_epochs_);
  line += has_length ? fmt::format(" [{}] {}/{}", bar(now.epoch_steps, now.epoch_length), now.epoch_steps, now.epoch_length)
                     : fmt::format(" step {}", now.epoch_steps);
  line += fmt::format("  loss {:.4f}", now.loss);
  if (now.images_per_second > 0) {
    line += "  " + speed(now.images_per_second);
    const auto left = static_cast<double>(std::max<std::int64_t>(total_steps_ - now.steps, 0));
    if (total_steps_ > 0) line += "  ETA " + duration(left / now.steps_per_second);
  }
  draw(line);
}

void Progress::compiling(std::size_t done, std::size_t total) {
  if (terminal_) {
    if (!compile_pace_.is_long(done, total)) return;
    const auto kernels = [](std::size_t count) { return static_cast<std::int64_t>(count); };
    draw(fmt::format("{} ({} of {}) [{}]", CompilePace::text(total), done, total, bar(kernels(done), kernels(total))));
  } else if (on_ && compile_pace_.is_news(done, total)) {
    fmt::print(stderr, "{}\n", CompilePace::text(total));
  }
}

void Progress::validating() {
  if (terminal_) draw("validating ...");
}

void Progress::epoch(const EpochMetrics& m) {
  if (!on_) return;
  std::string line = fmt::format("epoch {}", m.epoch);
  if (total_epochs_ > 0) line += fmt::format("/{}", total_epochs_);
  line += fmt::format(": train loss {:.4f}", m.train_loss);
  if (m.validation) line += fmt::format(", validation loss {:.4f}", m.validation->loss);
  if (m.validation && !std::isnan(m.validation->accuracy))
    line += fmt::format(", accuracy {:.2f} %", 100 * m.validation->accuracy);
  for (const auto& result : m.validation ? m.validation->metrics : m.metrics)
    line += fmt::format(", {}{} {:.4f}", m.validation ? "" : "train ", result.name, result.value);
  line += fmt::format(", {}, {:.1f} s", speed(m.images_per_second), m.seconds);
  if (terminal_) fmt::print(stderr, "\r{:<{}}\r", "", drawn_);
  fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
  drawn_ = 0;
}

}  // namespace clnet::train
