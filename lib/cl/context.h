// One device in use: its OpenCL context, in-order queue, memory pool, programs and profiler. Namespace ocl, so that ::cl stays
// the bindings'. Everything here may be called from several threads; kernels run in the order of the enqueue calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "clnet/device.h"
#include "lib/base/access.h"
#include "lib/cl/check.h"
#include "lib/cl/devices.h"
#include "lib/cl/in_flight.h"
#include "lib/cl/main_queue.h"
#include "lib/cl/memory_pool.h"
#include "lib/cl/opencl.h"
#include "lib/cl/profiler.h"
#include "lib/cl/program_cache.h"
#include "lib/cl/submission.h"

namespace clnet::ocl {

class Uploader;

class Context : public std::enable_shared_from_this<Context> {
 public:
  /// The context of a device, made at the first call and shared by later ones.
  static std::shared_ptr<Context> open(const Candidate& device);
  /// A caller's own objects, retained for the life of this context, never owned. The queue must be in-order.
  static std::shared_ptr<Context> wrap(cl_context context, cl_device_id device, cl_command_queue queue);
  ~Context();

  const DeviceInfo& info() const { return info_; }
  const cl::Context& context() const { return context_; }
  const cl::Device& device() const { return device_; }
  /// The queue of this moment; start_trace() may put another in its place. Hold lock() while enqueueing on it.
  cl::CommandQueue queue() const { return queue_->get(); }
  MemoryPool& memory() { return *memory_; }
  ProgramCache& programs() { return *programs_; }
  Profiler& profiler() { return *profiler_; }

  /// Held while a plan runs: kernel objects and the arena are shared, and its launches stay together; the queue stays the same.
  std::unique_lock<std::recursive_mutex> lock() { return std::unique_lock(mutex_); }

  /// While it lives, what this thread enqueues is not begun, unless it waits for the device, or the device's Submission holds
  /// nothing back. For a few commands, under lock().
  class Hold {
   public:
    explicit Hold(Context& context);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Context& context_;
  };

  /// Enqueues a kernel whose arguments are set. An empty local range leaves the choice to the driver. A zero-sized global range
  /// is skipped. Throws DeviceError naming kernel and OpenCL's code. `cost` is for the profiler. Waits while the device is a
  /// thousand kernels behind. A launch that must not fail for a passing reason is tried again, and throws nothing once it is
  /// enqueued.
  enum class Failing : std::uint8_t { told, tried_again };
  void launch(const cl::Kernel& kernel, const cl::NDRange& global, const cl::NDRange& local, const Cost& cost,
              Failing failing = Failing::told);

  /// Copies from the host, after the work enqueued before; returns when `source` may be reused, without waiting for that work
  /// unless the data are large or many such copies wait already (an eighth of the memory limit). With an `owner`, which keeps
  /// `source` as it is, nothing is copied aside.
  void write(const Buffer& target, std::size_t offset, const void* source, std::size_t bytes,
             std::shared_ptr<const void> owner = {});
  /// Waits for the work enqueued before and copies to the host. When it throws, nothing is written to `target` any more.
  void read(const Buffer& source, std::size_t offset, void* target, std::size_t bytes);
  /// A read that goes on beside the caller, after the work enqueued before.
  class Reading;
  std::unique_ptr<Reading> start_reading(const Buffer& source, std::size_t offset, std::size_t bytes);
  /// Enqueues filling of bytes of a buffer with one value.
  void fill(const Buffer& target, std::size_t offset, std::size_t bytes, unsigned char value);
  /// A buffer with the given content for data that a background thread prepares: zero-copy where host and device share memory,
  /// else through pinned memory and a transfer queue beside the kernels; work enqueued later waits for it, the caller does not.
  /// `fill` writes exactly `bytes` bytes.
  BufferPtr upload(std::size_t bytes, std::string_view what, const std::function<void(void*)>& fill);
  /// Hands enqueued work to the device without waiting.
  void flush();
  /// Waits until everything enqueued is done.
  void finish();
  /// To be called when kernels have been launched for the first time: waits for them with the quirk compiles-when-run.
  void settle();
  /// Gives memory kept for reuse back to the driver.
  void trim();
  /// See Device.
  void start_trace(const std::string& path);
  void stop_trace();
  /// What a floor above keeps for this device, one of each type; freed with it.
  struct Extension {
    virtual ~Extension() = default;
    /// Lets go of all memory that is not needed now. The context's lock is held.
    virtual void trim() = 0;
    /// Memory is short by a buffer of so many bytes: lets go of what is kept for speed only. Any thread may call it.
    virtual void reclaim(std::size_t bytes) = 0;
  };
  /// Made as T(context) by the first who asks; its constructor asks for no other.
  template <class T>
  T& extension() {
    return static_cast<T&>(
        extension(typeid(T), [](Context& context) -> std::unique_ptr<Extension> { return std::make_unique<T>(context); }));
  }
  /// Host bytes that commands still have to read.
  std::size_t host_bytes_in_flight() const { return in_flight_.bytes(); }
  /// Kernels launched so far.
  std::uint64_t launches() const { return launches_.load(std::memory_order_relaxed); }
  const Submission& submission() const { return *submission_; }

 private:
  struct Private {};

 public:
  Context(Private, const cl::Context& context, const Candidate& device, const cl::CommandQueue& queue);

 private:
  Extension& extension(std::type_index type, const std::function<std::unique_ptr<Extension>(Context&)>& make);
  /// Those that were made so far, which live as long as this.
  std::vector<Extension*> extensions() const;
  /// Where the next command's event goes: null unless somebody profiles.
  cl::Event* event_for(cl::Event& event) const { return profiler_->enabled() ? &event : nullptr; }
  void profile(const cl::Event& event, const Cost& cost);
  /// Whether few kernels were launched since something was read.
  bool is_short_call() const;
  /// To be called when a command is enqueued.
  void enqueued() noexcept { submission_->enqueued(is_short_call()); }
  /// What this thread holds back begins.
  void let_go() noexcept;
  /// The most host copies to wait for commands, in bytes.
  std::size_t most_copied() const;

  cl::Context context_;
  cl::Device device_;
  const bool own_queue_;
  DeviceInfo info_;
  std::recursive_mutex mutex_;
  std::shared_ptr<MainQueue> queue_;
  InFlight in_flight_;
  std::unique_ptr<Submission> submission_;
  std::atomic<std::uint64_t> launches_{0}, launches_read_{0};  ///< so far, and when something was read the last time
  std::unique_ptr<MemoryPool> memory_;
  std::unique_ptr<ProgramCache> programs_;
  std::unique_ptr<Profiler> profiler_;
  std::unique_ptr<Uploader> uploader_;
  mutable std::mutex extensions_mutex_;
  std::vector<std::pair<std::type_index, std::unique_ptr<Extension>>> extensions_;
};

/// The source's buffer must live as long as this. It is over when this goes, however long that takes.
class Context::Reading {
 public:
  ~Reading();
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  /// Whether wait() would not wait.
  bool ready() const;
  /// The bytes, once they are there. Throws DeviceError where the command failed. Any thread may call it.
  const std::byte* wait();

 private:
  friend class Context;
  Reading(std::shared_ptr<Context> context, std::size_t bytes)
      : context_(std::move(context)), bytes_(std::make_unique<std::byte[]>(bytes)), size_(bytes) {}

  std::shared_ptr<Context> context_;
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_;
  cl::CommandQueue queue_;
  cl::Event event_;
};

}  // namespace clnet::ocl

namespace clnet {

/// What a device is a handle to, and a handle to it.
namespace ocl {
/// What this thread's DeviceScope or set_default() says; null: neither does, and Device::current() finds one.
std::shared_ptr<Context> chosen_device();
}  // namespace ocl

inline const std::shared_ptr<ocl::Context>& context_of(const Device& device) { return detail::access::context(device); }
inline Device device_with(std::shared_ptr<ocl::Context> context) { return detail::access::make<Device>(std::move(context)); }

}  // namespace clnet
