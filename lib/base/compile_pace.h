// When somebody who waits for compilers should be told.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <string>

namespace clnet {

/// What is told of networks that take long to compile, as on_compile() tells of them one after another.
class CompilePace {
 public:
  explicit CompilePace(std::chrono::milliseconds patience) : patience_(patience) {}

  /// Whether the present one has taken longer than that.
  bool is_long(std::size_t done, std::size_t total) {
    if (done == 0 && (total != total_ || last_ > 0)) {
      begun_ = Clock::now();
      told_ = false;
    }
    total_ = total;
    last_ = done;
    return Clock::now() - begun_ >= patience_;
  }
  /// The same, once for each.
  bool is_news(std::size_t done, std::size_t total) {
    if (!is_long(done, total) || told_ || done == total) return false;
    return told_ = true;
  }
  static std::string text(std::size_t total) {
    return fmt::format("compiling {} {} for this network, once", total, total == 1 ? "kernel" : "kernels");
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::chrono::milliseconds patience_;
  Clock::time_point begun_ = Clock::now();
  std::size_t total_ = 0, last_ = 0;
  bool told_ = false;
};

}  // namespace clnet
