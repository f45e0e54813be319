// The log of a training: a JSON object a line, per step and per epoch; and the curves that it holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "clnet/train.h"
#include "lib/base/os/descriptor.h"

namespace clnet::tools {

struct Curves {
  struct Step {
    std::int64_t step;
    double loss;
  };
  struct Epoch {
    std::int64_t epoch;
    double train_loss, test_loss, test_accuracy;
    double seconds;  ///< of this epoch
  };
  std::vector<Step> steps;
  std::vector<Epoch> epochs;
};

class TrainLog {
 public:
  /// Speed is counted in `unit`, of which a sample is so many.
  TrainLog(std::filesystem::path path, std::string unit, std::int64_t per_sample)
      : path_(std::move(path)), unit_(std::move(unit)), per_sample_(per_sample) {}
  TrainLog(const TrainLog&) = delete;
  TrainLog& operator=(const TrainLog&) = delete;

  /// Cuts the file back to its first `steps` steps and `epochs` epochs, which are added to `curves`, and opens it. When there are
  /// none, the first line that is written replaces what was in it. Throws FileError, and leaves the file alone, when something
  /// else is in it that would have to be kept.
  void start(std::int64_t steps, std::int64_t epochs, Curves& curves);
  /// Lines reach the operating system at once, so that they outlive the process.
  void step(const Curves::Step& step);
  void epoch(const train::EpochMetrics& metrics);
  /// Waits until they are on the disk.
  void sync();

 private:
  void open();
  void write(const std::string& line);
  std::filesystem::path path_;
  std::string unit_;
  std::int64_t per_sample_;
  os::Descriptor file_;
};

}  // namespace clnet::tools
