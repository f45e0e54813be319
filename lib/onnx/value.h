// What a name of an ONNX graph stands for while the graph runs.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "clnet/device.h"
#include "clnet/error.h"
#include "clnet/nn/parameter.h"
#include "clnet/tensor.h"
#include "lib/onnx/host_tensor.h"

namespace clnet::onnx {

/// A tensor with ONNX's element type, a sequence of such, or nothing: an optional input that was left out.
///
/// A tensor is on the device, on the host, or both. What is on the host depends neither on data nor on parameters: constants, and
/// shapes with all that is computed from them.
class RunValue {
 public:
  RunValue() = default;
  RunValue(Tensor tensor, ElementType type, bool constant = false)
      : type_(type), constant_(constant), tensor_(std::move(tensor)) {}
  explicit RunValue(Tensor tensor) : type_(type_of(tensor.dtype())), tensor_(std::move(tensor)) {}
  explicit RunValue(HostTensor host)
      : type_(host.type),
        constant_(true),
        host_(std::make_shared<const HostTensor>(std::move(host))),
        made_(std::make_shared<Made>()) {}
  RunValue(nn::Parameter parameter, ElementType type) : RunValue(parameter.value(), type) { parameter_ = std::move(parameter); }
  static RunValue sequence(std::vector<RunValue> elements) {
    RunValue out;
    out.sequence_ = std::make_shared<const std::vector<RunValue>>(std::move(elements));
    return out;
  }

  bool is_there() const { return sequence_ || host_ || tensor_.defined(); }
  bool is_sequence() const { return sequence_ != nullptr; }
  const std::vector<RunValue>& elements() const { return *sequence_; }

  ElementType type() const { return type_; }
  const Shape& shape() const { return host_ ? host_->shape : tensor_.shape(); }
  /// On the device; made from the host's copy at the first call on the current device, once for all copies of the value. Throws
  /// Error for a sequence, and for nothing.
  const Tensor& tensor() const {
    if (tensor_.defined()) return tensor_;
    if (!host_) throw Error(sequence_ ? "a sequence is where a tensor is needed" : "there is no value where a tensor is needed");
    const auto device = Device::current();
    const std::lock_guard lock(made_->mutex);
    for (const auto& [where, tensor] : made_->tensors)
      if (where == device) return tensor;
    return made_->tensors.emplace_back(device, to_tensor(*host_)).second;
  }
  /// Null: not on the host.
  const std::shared_ptr<const HostTensor>& host() const { return host_; }
  /// Whether it depends neither on data nor on parameters.
  bool is_constant() const { return constant_; }
  void set_constant() { constant_ = true; }
  /// The initializer behind it, where the module trains or follows it.
  const std::optional<nn::Parameter>& parameter() const { return parameter_; }
  /// Of a buffer.
  void set_buffer() { buffer_ = true; }
  /// Whether it is a buffer, or a frozen parameter.
  bool is_untrained() const { return parameter_ && (buffer_ || parameter_->frozen()); }

 private:
  ElementType type_ = ElementType::undefined;
  bool constant_ = false, buffer_ = false;
  struct Made {
    std::mutex mutex;
    std::list<std::pair<Device, Tensor>> tensors;
  };
  std::shared_ptr<const HostTensor> host_;
  std::shared_ptr<Made> made_;
  Tensor tensor_;
  std::shared_ptr<const std::vector<RunValue>> sequence_;
  std::optional<nn::Parameter> parameter_;
};

}  // namespace clnet::onnx
