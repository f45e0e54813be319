// Runs programs for tests: with their output, or in the background to be signalled.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace clnet::test {

struct Outcome {
  int code = 0;  ///< exit code, or minus the signal that ended the program
  std::string out, err;
};

/// A program that is killed at the end of a test.
class Process {
 public:
  /// `folder` is its working folder and takes its output; environment entries are "NAME=value".
  Process(const std::filesystem::path& folder, std::vector<std::string> arguments,
          const std::vector<std::string>& environment = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;
  Outcome wait();

 private:
  std::filesystem::path out_, err_;
  pid_t pid_ = -1;
};

/// Whether the condition comes true within half a minute.
bool wait_until(const std::function<bool()>& condition);

/// clnet-train with these arguments, to its end.
Outcome clnet_train(const std::filesystem::path& folder, std::vector<std::string> arguments,
                    const std::vector<std::string>& environment = {});
/// The whole command line of clnet-train.
std::vector<std::string> clnet_train_command(std::vector<std::string> arguments);

/// Writes a small learnable dataset of 10 classes as IDX files: 8x8 images, each class with a bright spot of its own.
void write_idx_dataset(const std::filesystem::path& folder, int train_samples, int test_samples);

/// The objects of a log, without times.
std::vector<std::string> log_without_times(const std::filesystem::path& path);

}  // namespace clnet::test
