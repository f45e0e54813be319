// copy_to(): the operation that leads from one device to another.
#pragma once

#include <memory>
#include <string>

#include "lib/cl/context.h"
#include "lib/graph/node.h"
#include "lib/graph/op.h"

namespace clnet::exec {

/// The input's value on a device. No plan computes it: a work is cut there, and the value goes through the host.
class CopyTo : public Op {
 public:
  explicit CopyTo(std::shared_ptr<ocl::Context> device) : device_(std::move(device)) {}
  std::string_view name() const override { return "copy_to"; }
  Fields fields() const override;
  Precision precision() const override { return Precision::own; }
  Specs infer(const Specs& inputs) const override { return inputs; }
  /// The gradient goes back to where the input is, or would be computed.
  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override;

  const std::shared_ptr<ocl::Context>& device() const { return device_; }

 private:
  std::shared_ptr<ocl::Context> device_;
};

/// The operation of a node, where it is a copy; null: it is another, or a leaf.
const CopyTo* copy_of(const Node& node);

/// Where the tensor is, or what its graph reads; null: on no device yet.
std::shared_ptr<ocl::Context> device_of_graph(const Tensor& tensor);

/// The tensor where `other` is: a copy, if that is another device. What is on none yet counts as `home`.
Tensor beside(const Tensor& tensor, const Tensor& other, const std::shared_ptr<ocl::Context>& home = nullptr);

/// For errors: two devices may be equal, and one may have two contexts.
std::string label(const DeviceInfo& info);

/// For a value on `here` where what it is computed with is on `there`.
[[noreturn]] void refuse_two_devices(const ocl::Context& here, const ocl::Context& there);

}  // namespace clnet::exec
