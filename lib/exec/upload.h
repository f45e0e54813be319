// Leaves made on the device from data that a background thread prepares.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "clnet/tensor.h"

namespace clnet::exec {

/// A leaf on the device whose content `fill` writes (spec.bytes() bytes), without waiting for the device. Any thread may call it.
Tensor upload(const Spec& spec, const Device& device, const std::function<void(void*)>& fill);

/// The same of bytes, as many as the spec's; of whole numbers the host still knows them, and losses check labels.
Tensor upload(const Spec& spec, const Device& device, std::vector<std::byte> bytes);

/// A leaf with the tensor's value in memory of its own on the device: evaluates it, and waits.
Tensor copy_now(const Tensor& tensor, const Device& device);

}  // namespace clnet::exec
