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

/// A device buffer that goes back to its pool when the last handle is gone. Kernels already enqueued may still be using it: the
/// queue is in-order, so whatever is enqueued later on a reused buffer comes after them.
class Buffer {
 public:
  const cl::Buffer& memory() const { return memory_; }
  /// Of the driver's object, which several buffers are one after the other. Never given twice in a process, as a cl_mem may be.
  std::uint64_t id() const { return id_; }
  /// The bytes asked for; the buffer may be larger.
  std::size_t bytes() const { return bytes_; }
  /// Whether it is a caller's own, who may write to it at any time.
  bool imported() const { return pool_.expired(); }
  /// How many hold what lies in it, as the executor counts (lib/exec/collect/sole_owner.h): views of one buffer add up.
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
  MemoryPool(cl::Context context, const DeviceInfo& info);
  ~MemoryPool();

  /// A buffer of at least one byte, its content undefined. `what` (a tensor's spec, say) is asked for in an error only. Throws
  /// DeviceError when the device's largest allocation or the limit would be exceeded, after pooled buffers were given back; the
  /// text names `what`, the bytes asked for, the bytes in use and the limit. Nothing above the device's maximum reaches the
  /// driver.
  BufferPtr allocate(std::size_t bytes, const std::function<std::string()>& what);
  BufferPtr allocate(std::size_t bytes, std::string_view what) {
    return allocate(bytes, [&] { return std::string(what); });
  }
  /// A handle to a caller's cl_mem: retained, never pooled, not counted against the limit.
  BufferPtr import(cl_mem memory);

  MemoryStats stats() const;
  /// 0: what the device says. CLNET_MEMORY_LIMIT is the initial value.
  void set_limit(std::size_t bytes);
  /// Gives the buffers kept for reuse back to the driver.
  void trim();
  /// Called, unlocked, when memory runs short, so that others can let go of buffers that they keep: so many bytes are wanted.
  void set_reclaim(std::function<void(std::size_t)> reclaim);

 private:
  friend class Buffer;
  std::shared_ptr<State> state_;
};

}  // namespace clnet::ocl
