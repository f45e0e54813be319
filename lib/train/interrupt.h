// Ctrl-C and SIGTERM as a wish to end soon, while an object of this class lives.
#pragma once

#include <stop_token>
#include <thread>

namespace clnet::train {

/// The first signal is remembered; a second one does what it would have done without us: by default it ends the process. So does
/// the first one where nobody has answered it after 0.6 seconds and no training of this process has begun yet. What is ignored
/// stays so. The handlers found are put back at the end. Objects may live in several threads at once; all see the same signal.
class Interrupt {
 public:
  /// Does nothing unless `on`.
  explicit Interrupt(bool on);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;
  /// From now on there is something to save in this process.
  void begun();

 private:
  static void end_in_time(const std::stop_token& stop);

  bool on_;
  std::jthread watcher_;
};

}  // namespace clnet::train
