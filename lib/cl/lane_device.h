// Whether this thread belongs to one device (lib/parallel/lane.h).
#pragma once

#include <memory>

#include "lib/cl/context.h"

namespace clnet::ocl {

/// The device of the lane whose thread this is; null: of none.
const std::shared_ptr<Context>& lane_device();

/// Makes this thread the device's while it lives.
class InLane {
 public:
  explicit InLane(std::shared_ptr<Context> device);
  ~InLane();
  InLane(const InLane&) = delete;
  InLane& operator=(const InLane&) = delete;
};

}  // namespace clnet::ocl
