#include "lib/parallel/meeting.h"

#include <chrono>
#include <utility>

#include "lib/base/leave_scope.h"
#include "lib/exec/options/options.h"

namespace clnet::parallel {

namespace {

thread_local Attendance* innermost_attendance = nullptr;

}  // namespace

void Meeting::add_up(std::size_t member, std::int64_t which, std::span<float> numbers) {
  std::unique_lock lock(mutex_);
  if (ended_) throw MeetingEnded();
  brought_[member] = {which, numbers};
  if (++there_ < brought_.size()) {
    const auto round = rounds_;
    changed_.wait(lock, [&] { return ended_ || rounds_ != round; });
    // Who has the last sums may end the meeting before this thread is awake.
    if (rounds_ == round) throw MeetingEnded();
    return;
  }
  add_brought();
}

void Meeting::add_brought() {
  const auto& first = brought_[0];
  for (const auto& other : brought_)
    if (other.which != first.which || other.numbers.size() != first.numbers.size()) {
      ended_ = true;
      changed_.notify_all();
      throw UnlikeParts();
    }
  for (std::size_t i = 0; i < first.numbers.size(); ++i) {
    double sum = 0;
    for (const auto& each : brought_) sum += each.numbers[i];
    for (const auto& each : brought_) each.numbers[i] = static_cast<float>(sum);
  }
  there_ = 0;
  ++rounds_;
  changed_.notify_all();
}

void Meeting::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

Attendance::Attendance(std::size_t member, Meeting* meeting, GradientSums* gradients)
    : member_(member),
      meeting_(meeting),
      gradients_(gradients),
      detects_(exec::Options::now().anomaly.has_value()),
      outer_(std::exchange(innermost_attendance, this)) {}

Attendance::~Attendance() {
  leave_scope(innermost_attendance, this, &Attendance::outer_);
  if (meeting_) meeting_->end();
}

void Attendance::add_up(std::int64_t which, std::span<float> numbers) {
  aside([&] { meeting_->add_up(member_, which, numbers); });
}

void Attendance::aside(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  seconds_aside_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Attendance* Attendance::now() { return innermost_attendance; }

}  // namespace clnet::parallel
