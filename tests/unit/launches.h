// Launches that are recorded and run nowhere.
#pragma once

#include "lib/exec/launch/recorder.h"

namespace clnet::exec {

/// Launches over values of eight floats, unless said otherwise.
struct RecordedLaunches {
  Recording recording;
  DeviceInfo device;
  Choosing choosing;
  Recorder recorder{recording, device, choosing, {}, {}};

  Ref value(const Shape& shape = {8}, Dtype dtype = Dtype::f32) { return {recording.add_value({shape, dtype}), 0}; }
  Ref leaf() { return {recording.add_leaf({Shape{8}, Dtype::f32}, false), 0}; }
  Launch& launch() { return recorder.kernel("p", "f"); }
};

}  // namespace clnet::exec
