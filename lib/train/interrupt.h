// Ctrl-C and SIGTERM as a wish to end soon, while an object of this class lives.
#pragma once

namespace clnet::train {

/// The first signal is remembered; a second one does what it would have done without us: it ends the process. The handlers found
/// are put back at the end. Objects may live in several threads at once; all see the same signal.
class Interrupt {
 public:
  /// Does nothing unless `on`.
  explicit Interrupt(bool on);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;

 private:
  bool on_;
};

}  // namespace clnet::train
