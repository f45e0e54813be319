#include "lib/graph/capture.h"

#include <utility>

namespace clnet {

namespace {
thread_local Capture* now = nullptr;
}

Capture* capturing() { return now; }

Capturing::Capturing(Capture* capture) : before_(std::exchange(now, capture)) {}
Capturing::~Capturing() { now = before_; }

}  // namespace clnet
