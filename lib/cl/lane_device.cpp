#include "lib/cl/lane_device.h"

#include <utility>

namespace clnet::ocl {

namespace {
thread_local std::shared_ptr<Context> device_of_lane;
}  // namespace

const std::shared_ptr<Context>& lane_device() { return device_of_lane; }

InLane::InLane(std::shared_ptr<Context> device) { device_of_lane = std::move(device); }
InLane::~InLane() { device_of_lane.reset(); }

}  // namespace clnet::ocl
