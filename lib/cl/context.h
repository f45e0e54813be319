// One device in use: its OpenCL context, in-order queue, memory pool, programs and profiler. The namespace is ocl, because ::cl
// is that of the bindings. All functions may be called from several threads; kernels run in the order of the enqueue calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "clnet/device.h"
#include "lib/base/access.h"
#include "lib/base/process_mutex.h"
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
class Context;
class Mapping;

/// Whether this thread's DeviceScope has another device.
bool belongs_elsewhere(const Context& context);

class Context : public std::enable_shared_from_this<Context> {
 public:
  /// The context of a device, created by the first call and shared by later ones.
  static std::shared_ptr<Context> open(const Candidate& device);
  /// A context over a caller's own objects, retained while it lives and never owned. The queue must be in-order.
  static std::shared_ptr<Context> wrap(cl_context context, cl_device_id device, cl_command_queue queue);
  ~Context();
  /// The number of contexts that the process has made.
  static std::size_t made();

  const DeviceInfo& info() const { return info_; }
  const cl::Context& context() const { return context_; }
  const cl::Device& device() const { return device_; }
  /// The present queue, which start_trace() may replace. Hold lock() while enqueueing on it.
  cl::CommandQueue queue() const { return queue_->get(); }
  MemoryPool& memory() { return *memory_; }
  ProgramCache& programs() { return *programs_; }
  Profiler& profiler() { return *profiler_; }

  /// Held while a plan runs, because plans share kernel objects and the arena. Its launches stay together, and the queue stays
  /// the same.
  std::unique_lock<std::recursive_mutex> lock() {
    std::unique_lock held(mutex_, std::try_to_lock);
    if (held) return held;
    if (belongs_elsewhere(*this)) SharedWaits::add();
    held.lock();
    return held;
  }

  /// While it lives, commands of this thread do not begin before it waits for the device. They begin at once where the device's
  /// Submission holds nothing back. For a few commands, under lock().
  class HoldBack {
   public:
    explicit HoldBack(Context& context);
    ~HoldBack();
    HoldBack(const HoldBack&) = delete;
    HoldBack& operator=(const HoldBack&) = delete;

   private:
    Context& context_;
  };

  /// Enqueues a kernel whose arguments are set. The driver chooses an empty local range; a global range of size zero is skipped.
  /// Waits while the device is a thousand kernels behind. `cost` is for the profiler. Throws DeviceError with the kernel and
  /// OpenCL's code. With `tried_again` a launch that fails for a passing reason is repeated, and nothing is thrown once it is
  /// enqueued.
  enum class Failing : std::uint8_t { told, tried_again };
  void launch(const cl::Kernel& kernel, const cl::NDRange& global, const cl::NDRange& local, const Cost& cost,
              Failing failing = Failing::told);

  /// Copies from the host, after all earlier work, and returns when `source` may be reused. It waits for that work only where the
  /// data are large, or many such copies are pending (an eighth of the memory limit). An `owner` keeps `source` unchanged and so
  /// saves the copy.
  void write(const Buffer& target, std::size_t offset, const void* source, std::size_t bytes,
             std::shared_ptr<const void> owner = {});
  /// Waits for all earlier work and copies to the host. After an exception nothing is written to `target` any more.
  void read(const Buffer& source, std::size_t offset, void* target, std::size_t bytes);
  /// The same of several ranges, for which it waits once.
  struct Range {
    const Buffer* source;
    std::size_t offset;
    void* target;
    std::size_t bytes;
  };
  void read(std::span<const Range> ranges);
  /// Ranges of buffers in the host's memory, after all earlier work, for which it waits once. Meant for devices that share memory
  /// with the host; others copy.
  struct MappedRange {
    const Buffer* buffer;
    std::size_t offset, bytes;
    bool written;  ///< the host writes all of it, and does not read what was there
  };
  std::unique_ptr<Mapping> map(std::span<const MappedRange> ranges);
  /// An asynchronous read, after all earlier work.
  class Reading;
  std::unique_ptr<Reading> start_reading(const Buffer& source, std::size_t offset, std::size_t bytes);
  /// Enqueues a fill of `bytes` bytes with one value.
  void fill(const Buffer& target, std::size_t offset, std::size_t bytes, unsigned char value);
  /// A buffer with content from a background thread. It is zero-copy where host and device share memory; otherwise it goes
  /// through pinned memory and a transfer queue beside the kernels. Later work waits for the transfer, the caller does not.
  /// `fill` writes exactly `bytes` bytes.
  BufferPtr upload(std::size_t bytes, std::string_view what, const std::function<void(void*)>& fill);
  /// Submits enqueued work to the device and returns at once.
  void flush();
  /// Waits until all enqueued work is done.
  void finish();
  /// Call it after the first launch of kernels: with the quirk compiles-when-run it waits for them.
  void settle();
  /// Returns memory kept for reuse to the driver.
  void trim();
  /// See Device.
  void start_trace(const std::string& path);
  void stop_trace();
  /// State of a higher floor for this device, one object per type; freed with the context.
  struct Extension {
    virtual ~Extension() = default;
    /// Frees all memory that is not needed now. The context's lock is held.
    virtual void trim() = 0;
    /// Frees memory that only saves time: a buffer of `bytes` bytes is wanted. Any thread may call it.
    virtual void reclaim(std::size_t bytes) = 0;
  };
  /// The extension of type T, created as T(context) by the first call. Its constructor may not ask for another extension.
  template <class T>
  T& extension() {
    return static_cast<T&>(
        extension(typeid(T), [](Context& context) -> std::unique_ptr<Extension> { return std::make_unique<T>(context); }));
  }
  /// Host bytes that pending commands still read.
  std::size_t host_bytes_in_flight() const { return in_flight_.bytes(); }
  /// Kernels launched so far.
  std::uint64_t launches() const { return launches_.load(std::memory_order_relaxed); }
  const Submission& submission() const { return *submission_; }

 private:
  friend class Mapping;
  struct Private {};

 public:
  Context(Private, const cl::Context& context, const Candidate& device, const cl::CommandQueue& queue);

 private:
  Extension& extension(std::type_index type, const std::function<std::unique_ptr<Extension>(Context&)>& make);
  /// All extensions so far; they live as long as the context.
  std::vector<Extension*> extensions() const;
  /// The target for the next command's event; null unless profiling is on.
  cl::Event* event_for(cl::Event& event) const { return profiler_->enabled() ? &event : nullptr; }
  void profile(const cl::Event& event, const Cost& cost);
  /// Whether few kernels were launched since the last read.
  bool is_short_call() const;
  /// Call it when a command is enqueued.
  void enqueued() noexcept { submission_->enqueued(is_short_call()); }
  /// Starts the commands that this thread holds back.
  void let_go() noexcept;
  /// The limit of host copies for pending commands, in bytes.
  std::size_t most_copied() const;

  cl::Context context_;
  cl::Device device_;
  const bool own_queue_;
  DeviceInfo info_;
  std::recursive_mutex mutex_;
  std::shared_ptr<MainQueue> queue_;
  InFlight in_flight_;
  std::unique_ptr<Submission> submission_;
  std::atomic<std::uint64_t> launches_{0}, launches_read_{0};  ///< so far, and at the last read
  std::unique_ptr<MemoryPool> memory_;
  std::unique_ptr<ProgramCache> programs_;
  std::unique_ptr<Profiler> profiler_;
  std::unique_ptr<Uploader> uploader_;
  mutable std::mutex extensions_mutex_;
  std::vector<std::pair<std::type_index, std::unique_ptr<Extension>>> extensions_;
};

/// Kernels neither write to a range while it is mapped, nor read from one that the host writes.
class Mapping {
 public:
  /// As end(), without its exceptions.
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  /// A range's first byte.
  std::byte* at(std::size_t range) const { return static_cast<std::byte*>(mapped_[range].address); }
  /// Later work sees what the host wrote. Throws DeviceError.
  void end();

 private:
  friend class Context;
  explicit Mapping(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  struct Mapped {
    cl::Buffer memory;
    void* address;
  };
  std::shared_ptr<Context> context_;
  std::vector<Mapped> mapped_;
};

/// The source buffer must outlive it. The destructor waits until the read is over.
class Context::Reading {
 public:
  ~Reading();
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  /// Whether the bytes have arrived, so that wait() returns at once.
  bool ready() const;
  /// Waits for the bytes. Throws DeviceError where the command failed. Any thread may call it.
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

/// Converts between Device and its context.
namespace ocl {
/// The device of this thread's DeviceScope or of set_default(); null: neither is set, and Device::current() chooses one.
std::shared_ptr<Context> chosen_device();
}  // namespace ocl

inline const std::shared_ptr<ocl::Context>& context_of(const Device& device) { return detail::access::context(device); }
inline Device device_with(std::shared_ptr<ocl::Context> context) { return detail::access::make<Device>(std::move(context)); }

}  // namespace clnet
