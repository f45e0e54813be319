#include "lib/pocl/submission.h"

namespace clnet::pocl {

const std::vector<cl::Event>* GatedSubmission::waits() {
  return awake_ && awake_->holds_back() ? nullptr : gate_.waits(context_);
}

void GatedSubmission::enqueued(bool is_short) noexcept {
  if (!awake_ || gate_.is_mine()) return;
  if (is_short)
    awake_->call_begins();
  else
    awake_->release();
}

void GatedSubmission::require_open() {
  if (awake_) awake_->release();
  gate_.require_open();
}

void GatedSubmission::call_is_over(bool was_short) {
  if (awake_) awake_->call_is_over(was_short);
}

void GatedSubmission::stop() {
  if (awake_) awake_->stop();
}

}  // namespace clnet::pocl
