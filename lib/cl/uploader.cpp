#include "lib/cl/uploader.h"

#include <optional>
#include <utility>
#include <vector>

#include "lib/base/log.h"
#include "lib/cl/check.h"
#include "lib/cl/driver_lifetime.h"
#include "lib/cl/in_flight.h"
#include "lib/cl/pinned.h"

namespace clnet::ocl {

namespace {

/// Buffers and pinned blocks kept for the next batches; more than a loader prepares ahead is of no use.
constexpr std::size_t most_kept = 4;

/// Pinned memory, and the last copy from it.
struct Block {
  Pinned memory;
  cl::Event last_copy = {};

  ~Block() {
    if (drivers_gone() || !last_copy()) return;
    try {
      last_copy.wait();
    } catch (const cl::Error& error) {
      logging::print(logging::Level::plan, "pinned memory: {} from {}", error_name(error.err()), error.what());
    }
  }
};

/// A buffer whose readers are all enqueued; the last of them is before `released`.
struct Returned {
  BufferPtr buffer;
  cl::Event released;
};

}  // namespace

struct Uploader::State : std::enable_shared_from_this<State> {
  cl::Context context;
  cl::CommandQueue transfers;
  MemoryPool* memory;
  Profiler* profiler;
  std::shared_ptr<MainQueue> main;
  UploadPath path;
  std::mutex mutex;
  std::deque<Returned> returned;
  std::deque<std::unique_ptr<Block>> pinned;

  /// When all that is in the kernels' queue now is done.
  cl::Event end_of_main() const {
    return main->with([](const cl::CommandQueue& queue) {
      cl::Event event;
      queue.enqueueMarkerWithWaitList(nullptr, &event);
      queue.flush();  // the transfer queue will wait for it
      return event;
    });
  }

  /// A buffer and the event after which it may be overwritten.
  Returned take_buffer(std::size_t bytes, std::string_view what) {
    {
      const std::lock_guard lock(mutex);
      for (auto it = returned.begin(); it != returned.end(); ++it) {
        if (it->buffer->bytes() != bytes) continue;
        Returned found = std::move(*it);
        returned.erase(it);
        return found;
      }
    }
    // The pool counts on the order of the main queue: commands there may still use what it hands out.
    Returned fresh{memory->allocate(bytes, what), {}};
    fresh.released = end_of_main();
    return fresh;
  }

  std::unique_ptr<Block> take_pinned(std::size_t bytes) {
    {
      const std::lock_guard lock(mutex);
      for (auto it = pinned.begin(); it != pinned.end(); ++it) {
        if ((*it)->memory.bytes() < bytes || (*it)->memory.bytes() > 2 * bytes) continue;
        auto found = std::move(*it);
        pinned.erase(it);
        return found;
      }
    }
    return std::unique_ptr<Block>(new Block{.memory = {context, transfers, bytes, CL_MAP_WRITE}});
  }

  void keep_pinned(std::unique_ptr<Block> block) {
    std::unique_ptr<Block> oldest;
    const std::lock_guard lock(mutex);
    pinned.push_back(std::move(block));
    if (pinned.size() > most_kept) {
      oldest = std::move(pinned.front());
      pinned.pop_front();
    }
  }

  void give_back(const BufferPtr& buffer) {
    Returned back{buffer, {}}, oldest;
    try {
      back.released = end_of_main();
    } catch (const cl::Error& error) {
      logging::print(logging::Level::plan, "upload buffer: {} from {}", error_name(error.err()), error.what());
      return;
    }
    const std::lock_guard lock(mutex);
    returned.push_back(std::move(back));
    if (returned.size() > most_kept) {
      oldest = std::move(returned.front());
      returned.pop_front();
    }
  }

  void through_map(const Returned& target, std::size_t bytes, std::string_view what, const std::function<void(void*)>& fill) {
    const std::vector<cl::Event> wait{target.released};
    const cl::Buffer& buffer = target.buffer->memory();
    cl::Event mapped, unmapped;
    void* address = transfers.enqueueMapBuffer(buffer, CL_FALSE, CL_MAP_WRITE_INVALIDATE_REGION, 0, bytes, &wait, &mapped);
    try {
      wait_until_over(transfers, mapped);
      fill(address);
    } catch (...) {
      // Whatever the driver says to it: the first error is the one to tell.
      clEnqueueUnmapMemObject(transfers(), buffer(), address, 0, nullptr, nullptr);
      clFinish(transfers());
      throw;
    }
    transfers.enqueueUnmapMemObject(buffer, address, nullptr, &unmapped);
    // Nothing is copied, so this is over at once, and the main queue need not wait for an event.
    wait_until_over(transfers, unmapped);
    if (profiler->enabled()) profiler->add(unmapped, {"upload", what, static_cast<double>(bytes), 0});
  }

  void through_pinned(const Returned& target, std::size_t bytes, std::string_view what, const std::function<void(void*)>& fill) {
    std::unique_ptr<Block> block = take_pinned(bytes);
    if (block->last_copy()) wait_until_over(transfers, block->last_copy);
    fill(block->memory.address());
    const std::vector<cl::Event> wait{target.released};
    cl::Event copied;
    transfers.enqueueWriteBuffer(target.buffer->memory(), CL_FALSE, 0, bytes, block->memory.address(), &wait, &copied);
    block->last_copy = copied;
    try {
      transfers.flush();
      const std::vector<cl::Event> ready{copied};
      main->with([&](const cl::CommandQueue& queue) { queue.enqueueBarrierWithWaitList(&ready); });
    } catch (const cl::Error&) {
      // The buffer goes back to the pool now: not before it is written.
      wait_until_over(transfers, copied);
      throw;
    }
    keep_pinned(std::move(block));
    if (profiler->enabled()) profiler->add(copied, {"upload", what, static_cast<double>(bytes), 0});
  }
};

Uploader::Uploader(const cl::Context& context, const cl::Device& device, MemoryPool& memory, Profiler& profiler,
                   std::shared_ptr<MainQueue> main, UploadPath path)
    : state_(std::make_shared<State>()) {
  state_->context = context;
  state_->transfers = checked("a transfer queue", [&] { return cl::CommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE); });
  state_->memory = &memory;
  state_->profiler = &profiler;
  state_->main = std::move(main);
  state_->path = path;
}

Uploader::~Uploader() { reclaim(); }

BufferPtr Uploader::upload(std::size_t bytes, std::string_view what, const std::function<void(void*)>& fill) {
  State& state = *state_;
  if (bytes == 0) return state.memory->allocate(bytes, what);
  return checked(fmt::format("upload of {}", what), [&] {
    const Returned target = state.take_buffer(bytes, what);
    if (state.path == UploadPath::mapped) {
      state.through_map(target, bytes, what, fill);
    } else {
      state.through_pinned(target, bytes, what, fill);
    }
    // When the last handle goes, all that reads the buffer is enqueued: it comes back here with an event that says when that is
    // done, so that the next upload need not wait for the whole main queue.
    return BufferPtr(target.buffer.get(), [buffer = target.buffer, state_of = std::weak_ptr(state_)](Buffer*) {
      if (drivers_gone()) return;
      if (const auto alive = state_of.lock()) alive->give_back(buffer);
    });
  });
}

void Uploader::reclaim() {
  std::deque<Returned> buffers;
  std::deque<std::unique_ptr<Block>> blocks;
  const std::lock_guard lock(state_->mutex);
  buffers.swap(state_->returned);
  blocks.swap(state_->pinned);
}

}  // namespace clnet::ocl
