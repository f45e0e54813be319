// Runs a recording on a device: buffers are taken from the pool when a value is first written and given back after its last use.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lib/exec/recorder.h"
#include "lib/exec/value.h"

namespace clnet::exec {

/// What a recording's leaves are this time.
struct Binding {
  std::function<std::shared_ptr<DeviceValue>()> leaf;  ///< the leaf on the device, called at most once, when a buffer is needed
  const std::byte* scalar = nullptr;                   ///< the value of a host scalar
};
using Bindings = std::vector<Binding>;

/// Enqueues all commands; returns the values of `keep`.
std::vector<std::shared_ptr<DeviceValue>> run(const Recording& recording, ocl::Context& device, const Bindings& bindings,
                                              const std::vector<ValueId>& keep);

}  // namespace clnet::exec
