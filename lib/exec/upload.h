// Leaves made on the device from data that a background thread prepares.
#pragma once

#include <functional>

#include "clnet/tensor.h"

namespace clnet::exec {

/// A leaf on the device whose content `fill` writes (spec.bytes() bytes), without waiting for the device. Any thread may call it.
CLNET_API Tensor upload(const Spec& spec, const Device& device, const std::function<void(void*)>& fill);

}  // namespace clnet::exec
