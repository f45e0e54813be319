// copy_to(): the operation that copies from one device to another.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>

#include "clnet/error.h"
#include "lib/cl/context.h"
#include "lib/graph/node.h"
#include "lib/graph/op.h"

namespace clnet::exec {

/// The input's value on a device, or on that of a second input, whose value is not needed. No plan computes it: a work is cut
/// there, and the value goes through the host.
class CopyTo : public Op {
 public:
  explicit CopyTo(std::shared_ptr<ocl::Context> device) : device_(std::move(device)) {}
  std::string_view name() const override { return "copy_to"; }
  Fields fields() const override;
  Precision precision() const override { return Precision::own; }
  Specs infer(const Specs& inputs) const override { return {inputs[0]}; }
  /// The gradient goes back to the input's device at the time of its computation.
  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override;

  /// Null: the device of the second input.
  const std::shared_ptr<ocl::Context>& device() const { return device_; }

 private:
  std::shared_ptr<ocl::Context> device_;
};

/// The operation of a node that is a copy; null for others and leaves.
const CopyTo* copy_of(const Node& node);

/// Finds the devices of tensors, or of their graphs' leaves. A tensor found on no device is not searched again.
class DeviceFinder {
 public:
  DeviceFinder() = default;
  /// Treats `leaf` as on `device`, unless it is on one.
  DeviceFinder(const Tensor& leaf, std::shared_ptr<ocl::Context> device) : leaf_(uncounted(leaf)), device_(std::move(device)) {}
  /// The device; null: none yet.
  std::shared_ptr<ocl::Context> find(const Tensor& tensor);

 private:
  std::unordered_set<const Node*> nowhere_;
  Tensor leaf_;
  std::shared_ptr<ocl::Context> device_;
};
inline std::shared_ptr<ocl::Context> device_of_graph(const Tensor& tensor) { return DeviceFinder().find(tensor); }

/// The tensor on `to` instead of `from`: a copy where both are known and differ.
Tensor moved(const Tensor& tensor, const std::shared_ptr<ocl::Context>& from, const std::shared_ptr<ocl::Context>& to);

/// A device's text for errors: two devices may be equal, and one may have two contexts.
std::string label(const DeviceInfo& info);

/// Throws DeviceError for a value on `here` whose other operands are on `there`.
/// A mistake of the program's, not a device's failure.
class TwoDevices : public DeviceError {
 public:
  using DeviceError::DeviceError;
};
[[noreturn]] void refuse_two_devices(const ocl::Context& here, const ocl::Context& there);

}  // namespace clnet::exec
