// Where the lanes that compute the parts of one step add numbers up: host threads wait for one another, and no device does.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
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

/// This thread is a member while it lives. Then the meeting ends: a member that still waits for it would wait forever.
class Attendance {
 public:
  Attendance(Meeting& meeting, std::size_t member);
  ~Attendance();
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;

  /// This thread's innermost one, or null.
  static Attendance* now();
  void add_up(std::int64_t which, std::span<float> numbers);
  /// The seconds in which this thread had its numbers, and others had not.
  double waited() const { return waited_; }

 private:
  Meeting& meeting_;
  const std::size_t member_;
  double waited_ = 0;
  Attendance* outer_;
};

}  // namespace clnet::parallel
