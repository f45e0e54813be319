// Buffers of one device: reused by size, counted, and bounded by a limit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "clnet/device.h"
#include "lib/cl/opencl.h"

namespace clnet::ocl {

class MemoryPool;

/// A device buffer that returns to its pool with its last handle. Enqueued kernels may still use it: the queue is in-order, so
/// later uses of a reused buffer come after them.
class Buffer {
 public:
  const cl::Buffer& memory() const { return memory_; }
  /// The number of the driver's object, which several buffers use in turn. Unique in a process, unlike a cl_mem.
  std::uint64_t id() const { return id_; }
  /// The requested bytes; the buffer may be larger.
  std::size_t bytes() const { return bytes_; }
  /// Whether it belongs to a caller, who may write to it at any time.
  bool imported() const { return pool_.expired(); }
  /// The number of holders of its values, as the executor counts them (lib/exec/collect/sole_owner.h): views of one buffer add
  /// up.
  int holders() const { return holders_.load(std::memory_order_acquire); }
  void count(int by) { holders_.fetch_add(by, by > 0 ? std::memory_order_relaxed : std::memory_order_release); }
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

 private:
  friend class MemoryPool;
  Buffer(cl::Buffer memory, std::uint64_t id, std::size_t bytes, std::size_t capacity, std::weak_ptr<void> pool);
  cl::Buffer memory_;
  std::uint64_t id_;
  std::size_t bytes_, capacity_;
  std::weak_ptr<void> pool_;  // empty: imported, not pooled
  std::atomic<int> holders_{0};
};
using BufferPtr = std::shared_ptr<Buffer>;

class MemoryPool {
  struct State;

 public:
  MemoryPool(cl::Context context, const cl::Device& device, const DeviceInfo& info);
  ~MemoryPool();

  /// A buffer of at least one byte with undefined content. `what`, as a tensor's spec, is called for an error text only. Throws
  /// DeviceError where the size exceeds the device's largest allocation, or the limit even after pooled buffers were freed. The
  /// text has `what`, the requested bytes, the bytes in use and the limit. A size above the device's maximum never reaches the
  /// driver.
  BufferPtr allocate(std::size_t bytes, const std::function<std::string()>& what);
  BufferPtr allocate(std::size_t bytes, std::string_view what) {
    return allocate(bytes, [&] { return std::string(what); });
  }
  /// A handle to a caller's cl_mem: retained, never pooled, not counted against the limit.
  BufferPtr import(cl_mem memory);

  MemoryStats stats() const;
  /// The limit as far as other devices on the host's memory leave room. Where that is below `bytes`, their unused buffers are
  /// freed first.
  std::size_t limit_beside_others(std::size_t bytes);
  /// Sets the limit; 0: the device's own. CLNET_MEMORY_LIMIT is the initial value. Devices on the host's memory together stay
  /// within the largest of their limits (lib/cl/host_budget.h).
  void set_limit(std::size_t bytes);
  /// Returns the buffers kept for reuse to the driver.
  void trim();
  /// Sets the function that frees others' buffers when memory runs short. It gets the wanted bytes and runs without the lock.
  void set_reclaim(std::function<void(std::size_t)> reclaim);

 private:
  friend class Buffer;
  std::shared_ptr<State> state_;
};

}  // namespace clnet::ocl
