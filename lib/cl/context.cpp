#include "lib/cl/context.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "lib/base/env.h"
#include "lib/base/log.h"
#include "lib/base/process_mutex.h"
#include "lib/cl/before_drivers_end.h"
#include "lib/cl/driver_lifetime.h"
#include "lib/cl/quirks.h"
#include "lib/cl/split_launch.h"
#include "lib/cl/trace.h"
#include "lib/cl/uploader.h"

namespace clnet::ocl {

namespace {

/// Writes above this wait for the device rather than copy the data aside.
constexpr std::size_t largest_copied_write = 16 << 20;
/// The largest pattern of clEnqueueFillBuffer.
constexpr std::size_t largest_pattern = 128;
/// One of this many launches gets an event as mark. The host waits for the oldest of more than this many marks.
constexpr std::uint64_t launches_per_mark = 64;
constexpr std::size_t most_marks = 16;
/// This few kernels often end before a thread would sleep and wake again: a call of a small network takes half the time.
constexpr std::uint64_t few_launches = 8;

/// The contexts in use, by device. Never destroyed: at exit the driver may be gone before it.
struct Registry {
  ProcessMutex mutex;
  std::map<cl_device_id, std::weak_ptr<Context>> open;
  std::vector<std::weak_ptr<Context>> all;
};

Registry& registry() {
  static auto& instance = *new Registry;
  return instance;
}

/// Finishes devices and writes traces at exit, while the drivers still work: the handler is registered after they were loaded, so
/// it runs before their own.
void finish_all() {
  call_before_drivers_end();
  if (drivers_gone()) return;
  Registry& contexts = registry();
  std::vector<std::shared_ptr<Context>> alive;
  {
    const std::lock_guard lock(contexts.mutex);
    for (const auto& context : contexts.all) {
      if (auto locked = context.lock(); locked && locked->info().thread_safe) alive.push_back(std::move(locked));
    }
  }
  for (const auto& context : alive) {
    try {
      context->finish();
    } catch (const std::exception& error) {
      logging::write(error.what());
    }
  }
  TraceFile::tell_failures();
  end_drivers();
  end_prebuilders();
}

/// Call it with the registry's mutex held.
void remember(Registry& contexts, const std::shared_ptr<Context>& context) {
  [[maybe_unused]] static const int registered = std::atexit(finish_all);
  std::erase_if(contexts.all, [](const auto& other) { return other.expired(); });
  contexts.all.push_back(context);
}

cl::CommandQueue make_queue(const cl::Context& context, const cl::Device& device, bool profiling) {
  return cl::CommandQueue(context, device, profiling ? cl::QueueProperties::Profiling : cl::QueueProperties::None);
}

bool measures_times(const cl::CommandQueue& queue) {
  return (queue.getInfo<CL_QUEUE_PROPERTIES>() & CL_QUEUE_PROFILING_ENABLE) != 0;
}

}  // namespace

std::shared_ptr<Context> Context::open(const Candidate& device) {
  require_drivers();
  Registry& contexts = registry();
  const std::lock_guard lock(contexts.mutex);
  auto& known = contexts.open[device.device()];
  if (auto context = known.lock()) return context;
  auto context = checked(fmt::format("opening {}", device.info.name), [&] {
    return std::make_shared<Context>(Private(), cl::Context(device.device), device, cl::CommandQueue());
  });
  known = context;
  remember(contexts, context);
  return context;
}

std::shared_ptr<Context> Context::wrap(cl_context context, cl_device_id device, cl_command_queue queue) {
  require_drivers();
  use_drivers();
  return checked("wrapping an OpenCL context", [&] {
    if (!context || !device || !queue) throw DeviceError("wrapping an OpenCL context: context, device or queue is null");
    cl::Context its_context(context, true);
    cl::Device its_device(device, true);
    cl::CommandQueue its_queue(queue, true);
    if (its_queue.getInfo<CL_QUEUE_CONTEXT>()() != context || its_queue.getInfo<CL_QUEUE_DEVICE>()() != device) {
      throw DeviceError("wrapping an OpenCL context: the queue belongs to another context or device");
    }
    if (its_queue.getInfo<CL_QUEUE_PROPERTIES>() & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) {
      throw DeviceError("wrapping an OpenCL context: the queue is out-of-order, expected in-order");
    }
    Candidate candidate{its_device, describe(its_device)};
    for (const Candidate& other : candidates()) {
      if (other.device() == device) candidate.info = other.info;
    }
    auto wrapped = std::make_shared<Context>(Private(), its_context, candidate, its_queue);
    Registry& contexts = registry();
    const std::lock_guard lock(contexts.mutex);
    remember(contexts, wrapped);
    return wrapped;
  });
}

namespace {

std::atomic<std::size_t> contexts_made{0};

}  // namespace

std::size_t Context::made() { return contexts_made; }

Context::Context(Private, const cl::Context& context, const Candidate& device, const cl::CommandQueue& queue)
    : context_(context), device_(device.device), own_queue_(!queue()), info_(device.info) {
  ++contexts_made;
  profiler_ = std::make_unique<Profiler>(info_.name);
  queue_ = std::make_shared<MainQueue>(own_queue_ ? make_queue(context_, device_, profiler_->enabled()) : queue);
  if (!own_queue_ && profiler_->enabled() && !measures_times(queue)) {
    logging::warn_once("a wrapped queue was made without CL_QUEUE_PROFILING_ENABLE: its kernels cannot be profiled");
  }
  submission_ = submission_for(context_, device_, info_, own_queue_);
  memory_ = std::make_unique<MemoryPool>(context_, device_, info_);
  programs_ = std::make_unique<ProgramCache>(context_, device_, info_);
  uploader_ = std::make_unique<Uploader>(context_, device_, *memory_, *profiler_, queue_,
                                         info_.unified_memory ? UploadPath::mapped : UploadPath::pinned);
  memory_->set_reclaim([this](std::size_t bytes) {
    uploader_->reclaim();
    for (auto* extension : extensions()) extension->reclaim(bytes);
  });
}

Context::~Context() {
  if (!drivers_gone()) {
    try {
      finish();
    } catch (const std::exception& error) {
      logging::write(error.what());
    }
    // Releasing an object waits for the commands that use it.
    if (!submission_->is_stuck()) return;
  }
  // Members hold handles of their own, so they are leaked.
  (void)profiler_.release();
  (void)memory_.release();
  (void)programs_.release();
  (void)uploader_.release();
  for (auto& [type, extension] : extensions_) (void)extension.release();
  [[maybe_unused]] const auto* queue = new std::shared_ptr(std::move(queue_));
  submission_->leave_behind();
  leave_behind(device_);
  leave_behind(context_);
}

void Context::profile(const cl::Event& event, const Cost& cost) {
  if (event() && profiler_->enabled()) profiler_->add(event, cost);
}

std::size_t Context::most_copied() const {
  return std::clamp<std::size_t>(memory_->stats().limit / 8, largest_copied_write, std::size_t{64} << 20);
}

bool Context::is_short_call() const { return launches() - launches_read_.load(std::memory_order_relaxed) <= few_launches; }

void Context::let_go() noexcept {
  submission_->let_go();
  enqueued();
}

Context::HoldBack::HoldBack(Context& context) : context_(context) {
  // With a profiler nothing is held back: it shows when a command could have begun.
  if (!context_.profiler_->enabled()) context_.submission_->hold();
}

Context::HoldBack::~HoldBack() { context_.let_go(); }

void Context::launch(const cl::Kernel& kernel, const cl::NDRange& global, const cl::NDRange& local, const Cost& cost,
                     Failing failing) {
  for (std::size_t i = 0; i < global.dimensions(); ++i) {
    if (global.get()[i] == 0) return;
  }
  require_drivers();
  const auto what = [&] {
    const auto range = [](const cl::NDRange& sizes) {
      return fmt::format("{}", fmt::join(sizes.get(), sizes.get() + sizes.dimensions(), "x"));
    };
    return fmt::format("launch of {} {} over {} in groups of {} on {}", cost.name, cost.detail, range(global),
                       local.dimensions() ? range(local) : "the driver's choice", info_.name);
  };
  const bool marked = (launches_.load(std::memory_order_relaxed) + 1) % launches_per_mark == 0;
  cl::Event event;
  const auto pieces = split_launch(global, local, info_.max_groups_across);
  for (const auto& [offset, size] : pieces) {
    event = {};
    const auto enqueue = [&, &offset = offset, &size = size] {
      queue_->with([&](const cl::CommandQueue& queue) {
        queue.enqueueNDRangeKernel(kernel, offset, size, local, submission_->waits(), marked ? &event : event_for(event));
      });
    };
    // NVIDIA's driver allocates memory at a kernel's first use, so any launch may find none.
    bool lacks_memory = false;
    for (int attempts = 4; attempts > 0; --attempts) {
      try {
        checked(what, [&] {
          try {
            enqueue();
          } catch (const cl::Error& error) {
            lacks_memory = error.err() == CL_MEM_OBJECT_ALLOCATION_FAILURE;
            throw;
          }
        });
        break;
      } catch (const DeviceError& error) {
        // Finished commands and trimmed caches free driver memory. Open the gate first: commands behind it would never finish.
        let_go();
        if (attempts == 1 || submission_->is_stuck() || (failing == Failing::told && !lacks_memory)) throw;
        logging::print(logging::Level::plan, "{}: it is tried again", error.what());
        clFinish(queue_->get()());
        memory_->trim();
      }
    }
    enqueued();
    // The first piece carries the bytes and operations of all.
    profile(event, &offset == &pieces.front().offset ? cost : Cost{cost.name, cost.detail, 0, 0, cost.scope});
  }
  launches_.fetch_add(1, std::memory_order_relaxed);
  if (!marked) return;
  // This launch is enqueued: a failure now is an earlier launch's.
  try {
    checked([&] { return fmt::format("waiting for kernels launched earlier on {}", info_.name); },
            [&] {
              submission_->require_open();
              in_flight_.mark(event, most_marks);
            });
  } catch (const DeviceError& error) {
    if (failing == Failing::told) throw;
    logging::print(logging::Level::plan, "{}", error.what());
  }
}

void Context::settle() {
  if (!has_quirk(info_, "compiles-when-run")) return;
  try {
    finish();
  } catch (const Error& error) {
    // The work is enqueued and its results are in use: a reader waits again and gets the error.
    logging::print(logging::Level::plan, "{}", error.what());
  }
  // Registered late on purpose: it runs before the exit handlers of LLVM, which come with the first kernels.
  [[maybe_unused]] static const int registered = std::atexit(finish_all);
}

void Context::write(const Buffer& target, std::size_t offset, const void* source, std::size_t bytes,
                    std::shared_ptr<const void> owner) {
  if (bytes == 0) return;
  require_drivers();
  const auto what = [&] { return fmt::format("write of {} bytes at {} into {}", bytes, offset, target.bytes()); };
  checked(what, [&] {
    cl::Event event;
    if (bytes <= largest_pattern && std::has_single_bit(bytes) && offset % bytes == 0) {
      // A fill copies its pattern at once: the cheapest way for a scalar.
      const cl_int code = queue_->with([&](const cl::CommandQueue& queue) {
        const auto* before = submission_->waits();
        return clEnqueueFillBuffer(queue(), target.memory()(), source, bytes, offset, bytes, before ? 1 : 0,
                                   before ? &before->front()() : nullptr, profiler_->enabled() ? &event() : nullptr);
      });
      if (code != CL_SUCCESS) throw cl::Error(code, "clEnqueueFillBuffer");
    } else if (bytes <= (owner ? most_copied() : largest_copied_write)) {
      in_flight_.make_room(bytes, most_copied(), [&] { submission_->require_open(); });
      if (!owner) {
        std::shared_ptr<std::byte[]> copy(new (std::nothrow) std::byte[bytes]);
        if (!copy) throw DeviceError(fmt::format("write of {} bytes: no host memory", bytes));
        std::memcpy(copy.get(), source, bytes);
        source = copy.get();
        owner = std::move(copy);
      }
      queue_->with([&](const cl::CommandQueue& queue) {
        queue.enqueueWriteBuffer(target.memory(), CL_FALSE, offset, bytes, source, submission_->waits(), &event);
      });
      in_flight_.hold(event, std::move(owner), bytes);
    } else {
      submission_->require_open();
      const auto its_queue = queue_->with([&](const cl::CommandQueue& queue) {
        queue.enqueueWriteBuffer(target.memory(), CL_FALSE, offset, bytes, source, nullptr, &event);
        return queue;
      });
      wait_until_over(its_queue, event);
    }
    enqueued();
    profile(event, {"write", "", static_cast<double>(bytes), 0});
  });
}

namespace {

/// Enqueues a read and returns its queue. It is not blocking: rusticl's blocking read returns early when another thread flushes
/// the queue.
cl::CommandQueue enqueue_read(MainQueue& main, const Buffer& source, std::size_t offset, void* target, std::size_t bytes,
                              cl::Event& event) {
  return main.with([&](const cl::CommandQueue& queue) {
    queue.enqueueReadBuffer(source.memory(), CL_FALSE, offset, bytes, target, nullptr, &event);
    return queue;
  });
}

std::string read_text(const Buffer& source, std::size_t offset, std::size_t bytes) {
  return fmt::format("read of {} bytes at {} from {}", bytes, offset, source.bytes());
}

}  // namespace

void Context::read(const Buffer& source, std::size_t offset, void* target, std::size_t bytes) {
  if (bytes == 0) return;
  require_drivers();
  const auto what = [&] { return read_text(source, offset, bytes); };
  checked(what, [&] {
    submission_->require_open_for_read();
    cl::Event event;
    if (has_quirk(info_, "nvidia-reads")) {
      queue_->get().enqueueReadBuffer(source.memory(), CL_TRUE, offset, bytes, target, nullptr, event_for(event));
      launches_read_.store(launches(), std::memory_order_relaxed);
      in_flight_.collect();
      profile(event, {"read", "", static_cast<double>(bytes), 0});
      return;
    }
    const auto queue = enqueue_read(*queue_, source, offset, target, bytes, event);
    enqueued();
    const bool is_short = is_short_call();
    launches_read_.store(launches(), std::memory_order_relaxed);
    if (is_short && !submission_->wait(queue)) watch(queue, event);
    wait_until_over(queue, event);
    submission_->call_is_over(is_short && !profiler_->enabled());
    in_flight_.collect();
    profile(event, {"read", "", static_cast<double>(bytes), 0});
  });
}

namespace {

/// Reads under way. Ends when none of them writes any more.
class Reads {
 public:
  explicit Reads(std::size_t most) { begun_.reserve(most); }
  ~Reads() {
    for (const auto& [queue, event] : begun_) try {
        wait_until_over(queue, event);
      } catch (const cl::Error&) {
        // Told already, or nobody needs the bytes.
      }
  }
  Reads(const Reads&) = delete;
  Reads& operator=(const Reads&) = delete;

  cl::Event begin(MainQueue& main, const Context::Range& range) {
    cl::Event event;
    auto queue = enqueue_read(main, *range.source, range.offset, range.target, range.bytes, event);
    begun_.emplace_back(std::move(queue), event);
    return event;
  }
  void wait() const {
    for (const auto& [queue, event] : begun_) wait_until_over(queue, event);
  }

 private:
  std::vector<std::pair<cl::CommandQueue, cl::Event>> begun_;
};

}  // namespace

void Context::read(std::span<const Range> ranges) {
  if (ranges.empty()) return;
  const auto& [source, offset, target, bytes] = ranges.back();
  const auto others = ranges.first(ranges.size() - 1);
  if (others.empty() || has_quirk(info_, "nvidia-reads")) {
    for (const auto& range : ranges) read(*range.source, range.offset, range.target, range.bytes);
    return;
  }
  require_drivers();
  const auto what = [&] { return fmt::format("read of {} ranges", ranges.size()); };
  Reads reads(others.size());
  checked(what, [&] {
    submission_->require_open();
    for (const auto& range : others)
      if (range.bytes > 0) profile(reads.begin(*queue_, range), {"read", "", static_cast<double>(range.bytes), 0});
  });
  read(*source, offset, target, bytes);
  checked(what, [&] { reads.wait(); });
}

std::unique_ptr<Mapping> Context::map(std::span<const MappedRange> ranges) {
  std::unique_ptr<Mapping> mapping(new Mapping(shared_from_this()));
  if (ranges.empty()) return mapping;
  require_drivers();
  const auto what = [&] { return fmt::format("mapping of {} ranges", ranges.size()); };
  checked(what, [&] {
    submission_->require_open();
    mapping->mapped_.reserve(ranges.size());
    cl::CommandQueue its_queue;
    cl::Event event;
    for (const auto& range : ranges)
      its_queue = queue_->with([&](const cl::CommandQueue& queue) {
        const cl_map_flags access = range.written ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ;
        const auto& memory = range.buffer->memory();
        auto* address = queue.enqueueMapBuffer(memory, CL_FALSE, access, range.offset, range.bytes, nullptr, &event);
        mapping->mapped_.push_back({memory, address});
        return queue;
      });
    enqueued();
    wait_until_over(its_queue, event);
    in_flight_.collect();
  });
  return mapping;
}

Mapping::~Mapping() {
  try {
    end();
  } catch (const Error& error) {
    logging::print(logging::Level::plan, "{}", error.what());
  }
}

void Mapping::end() {
  const auto mapped = std::exchange(mapped_, {});
  if (mapped.empty()) return;
  require_drivers();
  const auto what = [&] { return fmt::format("unmapping of {} ranges", mapped.size()); };
  checked(what, [&] {
    std::optional<cl::Error> failure;
    context_->queue_->with([&](const cl::CommandQueue& queue) {
      for (const auto& [memory, address] : mapped) try {
          queue.enqueueUnmapMemObject(memory, address);
        } catch (const cl::Error& error) {
          if (!failure) failure = error;
        }
    });
    if (failure) throw *failure;
  });
}

std::unique_ptr<Context::Reading> Context::start_reading(const Buffer& source, std::size_t offset, std::size_t bytes) {
  std::unique_ptr<Reading> reading(new Reading(shared_from_this(), bytes));
  if (bytes == 0) return reading;
  require_drivers();
  const auto what = [&] { return read_text(source, offset, bytes); };
  checked(what, [&] {
    submission_->require_open();
    reading->queue_ = enqueue_read(*queue_, source, offset, reading->bytes_.get(), bytes, reading->event_);
    reading->queue_.flush();
    profile(reading->event_, {"read", "", static_cast<double>(bytes), 0});
  });
  return reading;
}

Context::Reading::~Reading() {
  if (!event_()) return;
  try {
    wait_until_over(queue_, event_);
  } catch (const cl::Error&) {
    // The command is over, and nobody needs the bytes.
  }
}

bool Context::Reading::ready() const {
  if (!event_()) return true;
  require_drivers();
  return checked("read", [&] { return event_.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>(); }) <= CL_COMPLETE;
}

const std::byte* Context::Reading::wait() {
  if (!event_()) return bytes_.get();
  require_drivers();
  const auto what = [&] { return fmt::format("read of {} bytes", size_); };
  checked(what, [&] { wait_until_over(queue_, event_); });
  return bytes_.get();
}

void Context::fill(const Buffer& target, std::size_t offset, std::size_t bytes, unsigned char value) {
  require_drivers();
  const auto what = [&] { return fmt::format("fill of {} bytes", bytes); };
  checked(what, [&] {
    cl::Event event;
    queue_->with([&](const cl::CommandQueue& queue) {
      queue.enqueueFillBuffer(target.memory(), value, offset, bytes, nullptr, event_for(event));
    });
    enqueued();
    profile(event, {"fill", "", static_cast<double>(bytes), 0});
  });
}

BufferPtr Context::upload(std::size_t bytes, std::string_view what, const std::function<void(void*)>& fill) {
  require_drivers();
  return uploader_->upload(bytes, what, fill);
}

void Context::flush() {
  require_drivers();
  checked("flush", [&] {
    submission_->require_open();
    queue().flush();
  });
}

void Context::finish() {
  require_drivers();
  const auto what = [&] { return fmt::format("waiting for {}", info_.name); };
  checked(what, [&] {
    submission_->require_open();
    // A marker, as in read(): finish() may return early too.
    cl::Event last;
    const auto its_queue = queue_->with([&](const cl::CommandQueue& queue) {
      queue.enqueueMarkerWithWaitList(nullptr, &last);
      return queue;
    });
    its_queue.finish();
    last.wait();
    submission_->stop();
  });
  in_flight_.collect();
  profiler_->collect();
}

void Context::trim() {
  require_drivers();
  {
    const auto guard = lock();
    for (auto* extension : extensions()) extension->trim();
  }
  memory_->trim();
}

Context::Extension& Context::extension(std::type_index type, const std::function<std::unique_ptr<Extension>(Context&)>& make) {
  const std::lock_guard lock(extensions_mutex_);
  for (const auto& [known, extension] : extensions_)
    if (known == type) return *extension;
  extensions_.emplace_back(type, make(*this));
  return *extensions_.back().second;
}

std::vector<Context::Extension*> Context::extensions() const {
  const std::lock_guard lock(extensions_mutex_);
  std::vector<Extension*> all;
  for (const auto& [type, extension] : extensions_) all.push_back(extension.get());
  return all;
}

void Context::start_trace(const std::string& path) {
  const auto guard = lock();
  finish();
  checked("starting a trace", [&] {
    if (measures_times(queue())) return;
    if (!own_queue_)
      throw Unsupported("trace: the wrapped queue was made without CL_QUEUE_PROFILING_ENABLE, it measures no times");
    // Commands that other threads enqueued on the old queue come before all on the new one.
    queue_->replace([&](const cl::CommandQueue& old) {
      old.finish();
      return make_queue(context_, device_, true);
    });
  });
  profiler_->start_trace(path);
}

void Context::stop_trace() {
  finish();
  profiler_->stop_trace();
}

}  // namespace clnet::ocl
