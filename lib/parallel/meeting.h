// Where the lanes that compute the parts of one step add numbers up: host threads wait for one another, and no device does.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "clnet/error.h"

namespace clnet::parallel {

/// What a part throws whose sums never come, as another part has failed. That one's exception tells why.
class MeetingEnded : public Error {
 public:
  MeetingEnded() : Error("Replicas: another part of the step has failed") {}
};

/// Parts have other sums.
class UnlikeParts : public Error {
 public:
  UnlikeParts() : Error("Replicas: the step function builds another graph for each part") {}
};

/// The sums of one step. Each of its members, numbered from 0, is a thread that brings its numbers, again and again.
class Meeting {
 public:
  explicit Meeting(std::size_t members) : brought_(members) {}
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Replaces the numbers by the sums over all members, added in their order, and waits for these. `which` tells sums apart:
  /// members bring the same ones in the same order, else this throws UnlikeParts. Throws MeetingEnded where a member does not
  /// come.
  void add_up(std::size_t member, std::int64_t which, std::span<float> numbers);
  /// No more sums: who waits, or comes later, gets MeetingEnded.
  void end();

 private:
  struct Brought {
    std::int64_t which = 0;
    std::span<float> numbers;  ///< of a thread that waits
  };
  void add_brought();

  std::mutex mutex_;  ///< guards all below
  std::condition_variable changed_;
  std::vector<Brought> brought_;
  std::size_t there_ = 0;     ///< members whose numbers are there
  std::uint64_t rounds_ = 0;  ///< sums so far
  bool ended_ = false;
};

class GradientSums;

/// This thread computes a part of a step while it lives. Then the meeting ends: a member that still waits for this one would wait
/// forever.
class Attendance {
 public:
  /// `meeting`: where the parts wait for one another, `gradients`: who takes the part's gradients; each may be null.
  Attendance(std::size_t member, Meeting* meeting, GradientSums* gradients = nullptr);
  ~Attendance();
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;

  /// This thread's innermost one, or null.
  static Attendance* now();
  std::size_t member() const { return member_; }
  /// Whether DetectAnomaly was on where the part began.
  bool detects() const { return detects_; }
  GradientSums* gradients() const { return gradients_; }
  Meeting* meeting() const { return meeting_; }
  void add_up(std::int64_t which, std::span<float> numbers);
  /// Does what takes no time of the part's own, as waiting for others.
  void aside(const std::function<void()>& work);
  double seconds_aside() const { return seconds_aside_; }

 private:
  const std::size_t member_;
  Meeting* meeting_;
  GradientSums* gradients_;
  const bool detects_;
  double seconds_aside_ = 0;
  Attendance* outer_;
};

}  // namespace clnet::parallel
