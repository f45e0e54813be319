// Submission of batches of commands to PoCL: behind a start gate, and with a thread that stays awake between short calls.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "lib/cl/submission.h"
#include "lib/pocl/spinning_thread.h"
#include "lib/pocl/start_gate.h"

namespace clnet::pocl {

/// For a driver whose every command wakes all its threads (the quirk pocl-wakes).
class GatedSubmission final : public ocl::Submission {
 public:
  /// `spinning`: null where the driver's threads are left alone.
  GatedSubmission(const cl::Context& context, std::unique_ptr<SpinningThread> spinning)
      : context_(context), spinning_(std::move(spinning)) {}

  void hold() override { gate_.close(); }
  void let_go() noexcept override { gate_.open(); }
  const std::vector<cl::Event>* waits() override;
  void enqueued(bool is_short) noexcept override;
  void require_open() override;
  void require_open_for_read() override { gate_.require_open(); }
  bool is_stuck() const override { return gate_.is_stuck(); }
  bool wait(const cl::CommandQueue& queue) override { return spinning_ && spinning_->wait(queue); }
  void call_is_over(bool was_short) override;
  void stop() override;
  void leave_behind() override { gate_.leave_behind(); }

  const SpinningThread* spinning() const { return spinning_.get(); }

 private:
  const cl::Context context_;
  StartGate gate_;
  std::unique_ptr<SpinningThread> spinning_;
};

}  // namespace clnet::pocl
