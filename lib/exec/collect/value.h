// What an evaluated output holds: a part of a device buffer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/cl/context.h"
#include "lib/graph/node.h"

namespace clnet::exec {

/// Keeps what was made of values, for as long as these live.
class MadeOfValues {
 public:
  /// The value of this id is gone.
  virtual void drop(std::uint64_t value) = 0;

 protected:
  ~MadeOfValues() = default;
};

struct DeviceValue : Value {
  DeviceValue(std::shared_ptr<ocl::Context> where, ocl::BufferPtr memory, std::int64_t first);
  /// What was made of it and kept goes with it.
  ~DeviceValue() override;
  DeviceValue(const DeviceValue&) = delete;
  DeviceValue& operator=(const DeviceValue&) = delete;

  const std::uint64_t id;  ///< never given twice in a process
  std::shared_ptr<ocl::Context> device;
  const ocl::BufferPtr buffer;
  std::int64_t offset;                             ///< of the first element, in elements
  std::atomic<MadeOfValues*> made_of_it{nullptr};  ///< the device's, which lives as long; null: nothing was made of it
  /// Another value has been made in its memory: whoever reads it gets an error, and who has it holds no memory any more.
  std::atomic<bool> overwritten{false};
  /// What it was uploaded from, kept of whole numbers, so that labels can be checked without waiting for the device. Set before
  /// anyone else knows the value.
  std::shared_ptr<const HostValue> uploaded;
  /// The program has the memory in its hands, and may write there.
  std::atomic<bool> is_lent{false};

  const std::byte* on_host() const override { return uploaded && !is_lent ? uploaded->on_host() : nullptr; }
  void count(int by) override {
    if (!overwritten) buffer->count(by);
  }
  /// To be called by who found one slot to be its sole owner.
  void set_overwritten();
  /// Keeps what it was uploaded from, if that is worth keeping.
  void keep(const Spec& spec, std::shared_ptr<const HostValue> from);
};

/// A one-element leaf in host memory: kernels get it by value, everything else through a small buffer made on demand. A slot's is
/// none: its next value comes from the device, and would need another plan.
inline bool is_host_scalar(const Tensor& leaf, const Value* value) {
  return leaf.numel() == 1 && node_of(leaf)->slot == 0 && dynamic_cast<const HostValue*>(value) != nullptr;
}

}  // namespace clnet::exec
