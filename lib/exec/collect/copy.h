// copy_to(): the operation that leads from one device to another.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>

#include "lib/cl/context.h"
#include "lib/graph/node.h"
#include "lib/graph/op.h"

namespace clnet::exec {

/// The input's value on a device, or without one where a second input is, whose value it does not need. No plan computes it: a
/// work is cut there, and the value goes through the host.
class CopyTo : public Op {
 public:
  explicit CopyTo(std::shared_ptr<ocl::Context> device) : device_(std::move(device)) {}
  std::string_view name() const override { return "copy_to"; }
  Fields fields() const override;
  Precision precision() const override { return Precision::own; }
  Specs infer(const Specs& inputs) const override { return {inputs[0]}; }
  /// The gradient goes back to where the input is by the time it is computed.
  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override;

  /// Null: where the second input is.
  const std::shared_ptr<ocl::Context>& device() const { return device_; }

 private:
  std::shared_ptr<ocl::Context> device_;
};

/// The operation of a node, where it is a copy; null: it is another, or a leaf.
const CopyTo* copy_of(const Node& node);

/// Finds where tensors are, or what their graphs read. What was found to be on no device is not looked at again.
class DeviceFinder {
 public:
  DeviceFinder() = default;
  /// `leaf` comes to be on `device`, unless it is on one.
  DeviceFinder(const Tensor& leaf, std::shared_ptr<ocl::Context> device) : leaf_(uncounted(leaf)), device_(std::move(device)) {}
  /// Null: on no device yet.
  std::shared_ptr<ocl::Context> find(const Tensor& tensor);

 private:
  std::unordered_set<const Node*> nowhere_;
  Tensor leaf_;
  std::shared_ptr<ocl::Context> device_;
};
inline std::shared_ptr<ocl::Context> device_of_graph(const Tensor& tensor) { return DeviceFinder().find(tensor); }

/// The tensor, which is on `from`, as it is on `to`: a copy where both are known and differ.
Tensor moved(const Tensor& tensor, const std::shared_ptr<ocl::Context>& from, const std::shared_ptr<ocl::Context>& to);

/// For errors: two devices may be equal, and one may have two contexts.
std::string label(const DeviceInfo& info);

/// For a value on `here` where what it is computed with is on `there`.
[[noreturn]] void refuse_two_devices(const ocl::Context& here, const ocl::Context& there);

}  // namespace clnet::exec
