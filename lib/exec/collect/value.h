// The value of an evaluated output: a part of a device buffer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/cl/context.h"
#include "lib/graph/node.h"

namespace clnet::exec {

/// Keeps objects derived from values while these live.
class MadeOfValues {
 public:
  /// The value with this id was destroyed.
  virtual void drop(std::uint64_t value) = 0;

 protected:
  ~MadeOfValues() = default;
};

struct DeviceValue : Value {
  DeviceValue(std::shared_ptr<ocl::Context> where, ocl::BufferPtr memory, std::int64_t first);
  /// Objects derived from it are dropped, too.
  ~DeviceValue() override;
  DeviceValue(const DeviceValue&) = delete;
  DeviceValue& operator=(const DeviceValue&) = delete;

  const std::uint64_t id;  ///< unique in a process
  std::shared_ptr<ocl::Context> device;
  const ocl::BufferPtr buffer;
  std::int64_t offset;                             ///< offset of the first element, in elements
  std::atomic<MadeOfValues*> made_of_it{nullptr};  ///< the device's cache, which outlives it; null: nothing was derived
  /// Another value has overwritten its memory: readers get an error, and it holds no memory any more.
  std::atomic<bool> overwritten{false};
  /// The uploaded host data, kept for integers, so that labels can be checked without a wait for the device. Set before any other
  /// thread knows the value.
  std::shared_ptr<const HostValue> uploaded;
  /// The program has access to the memory, and may write there.
  std::atomic<bool> is_lent{false};

  const std::byte* on_host() const override { return uploaded && !is_lent ? uploaded->on_host() : nullptr; }
  void count(int by) override {
    if (!overwritten) buffer->count(by);
  }
  /// Call it only where one cell is its sole owner.
  void set_overwritten();
  /// Keeps the uploaded data where they are useful.
  void keep(const Spec& spec, std::shared_ptr<const HostValue> from);
};

/// A one-element leaf in host memory: kernels get it by value, other users through a small buffer. A slot's value is never one:
/// its next value comes from the device, and would need another plan.
inline bool is_host_scalar(const Tensor& leaf, const Value* value) {
  return leaf.numel() == 1 && node_of(leaf)->slot == 0 && dynamic_cast<const HostValue*>(value) != nullptr;
}

}  // namespace clnet::exec
