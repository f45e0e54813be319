// Leaves on a device from data of a background thread.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "clnet/tensor.h"

namespace clnet::exec {

/// A leaf on the device with the content of `fill` (spec.bytes() bytes); does not wait for the device. Any thread may call it.
Tensor upload(const Spec& spec, const Device& device, const std::function<void(void*)>& fill);

/// The same from bytes, spec.bytes() of them. The host keeps integers, so that losses can check labels.
Tensor upload(const Spec& spec, const Device& device, std::vector<std::byte> bytes);

/// A leaf with a copy of the tensor's value on the device: evaluates it, and waits.
Tensor copy_now(const Tensor& tensor, const Device& device);

}  // namespace clnet::exec
