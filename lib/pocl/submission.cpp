#include "lib/pocl/submission.h"

namespace clnet::pocl {

const std::vector<cl::Event>* GatedSubmission::waits() {
  return spinning_ && spinning_->holds_back() ? nullptr : gate_.waits(context_);
}

void GatedSubmission::enqueued(bool is_short) noexcept {
  if (!spinning_ || gate_.is_mine()) return;
  if (is_short)
    spinning_->call_begins();
  else
    spinning_->release();
}

void GatedSubmission::require_open() {
  if (spinning_) spinning_->release();
  gate_.require_open();
}

void GatedSubmission::call_is_over(bool was_short) {
  if (spinning_) spinning_->call_is_over(was_short);
}

void GatedSubmission::stop() {
  if (spinning_) spinning_->stop();
}

}  // namespace clnet::pocl
