// What fit() says on stderr while it trains.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "clnet/train.h"
#include "lib/base/compile_pace.h"

namespace clnet::train {

/// What speed is counted in.
struct Unit {
  const char* name;
  std::int64_t per_sample;
};

/// On a terminal one line that is redrawn ten times a second at most; elsewhere a line per epoch, and one where compiling takes
/// long.
class Progress {
 public:
  /// `total_steps` counts from the start of training; it and `total_epochs` are 0 when not known.
  Progress(bool on, std::int64_t total_epochs, std::int64_t total_steps, const Unit& unit);
  /// Leaves no half-drawn line behind.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  struct Now {
    std::int64_t epoch = 1, steps = 0;                   ///< steps: since the start of training
    std::int64_t epoch_steps = 0, epoch_length = 1;      ///< length: 0 when not known
    double loss = 0;                                     ///< mean of the epoch so far
    double images_per_second = 0, steps_per_second = 0;  ///< 0: not known yet
  };
  void step(const Now& now);
  void validating();
  /// On a terminal a line that is redrawn, once compiling takes longer than half a second; elsewhere a line after a second.
  void compiling(std::size_t done, std::size_t total);
  void epoch(const EpochMetrics& metrics);

 private:
  void draw(const std::string& line);
  std::string speed(double samples_per_second) const;

  bool on_, terminal_;
  std::int64_t total_epochs_, total_steps_;
  Unit unit_;
  std::size_t drawn_ = 0;  ///< characters of the line on the terminal
  std::optional<std::chrono::steady_clock::time_point> last_;
  CompilePace compile_pace_;
};

}  // namespace clnet::train
