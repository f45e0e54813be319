#include "lib/cl/memory_pool.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/env.h"
#include "lib/cl/check.h"
#include "lib/cl/driver_lifetime.h"
#include "lib/cl/host_budget.h"
#include "lib/cl/huge_pages.h"

namespace clnet::ocl {

namespace {

/// Eight classes per power of two: at most an eighth is lost, and buffers of nearly the same size are reused for each other.
std::size_t size_class(std::size_t bytes) {
  const std::size_t step = std::max<std::size_t>(std::bit_floor(bytes) / 8, 256);
  return (bytes + step - 1) / step * step;
}

std::string size(std::size_t bytes) {
  if (bytes < 10000) return fmt::format("{} B", bytes);
  if (bytes < 10u << 20) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

/// A driver's object and its number.
struct Memory {
  cl::Buffer buffer;
  std::uint64_t id = 0;
};

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

struct MemoryPool::State {
  cl::Context context;
  std::size_t max_allocation = 0, device_limit = 0;
  bool reuses = true;
  std::optional<HugePages> huge_pages;
  std::mutex mutex;
  std::multimap<std::size_t, Memory> kept;
  MemoryStats stats;
  std::function<void(std::size_t)> reclaim;
  std::optional<HostBudget::Share> share;  ///< of a device that uses the host's memory; it ends before what it calls

  /// Call with the mutex held. Dropped buffers go into `out`, to be released without the lock.
  void drop_until(std::size_t most_pooled, std::vector<Memory>& out) {
    while (stats.pooled > most_pooled && !kept.empty()) {
      const auto largest = std::prev(kept.end());
      stats.pooled -= largest->first;
      if (share) share->give(largest->first);
      out.push_back(std::move(largest->second));
      kept.erase(largest);
    }
  }
  bool fits(std::size_t capacity) const { return stats.in_use <= stats.limit && capacity <= stats.limit - stats.in_use; }
  void count(std::size_t capacity) {
    stats.in_use += capacity;
    stats.high_water = std::max(stats.high_water, stats.in_use);
  }
  /// Counts a new buffer, which fits(), where the host's memory has room for it, too.
  bool reserve(std::size_t capacity, std::vector<Memory>& out) {
    drop_until(stats.limit - stats.in_use - capacity, out);
    while (share && !share->take(capacity)) {
      if (kept.empty()) return false;
      drop_until(stats.pooled - 1, out);
    }
    count(capacity);
    return true;
  }
  /// Takes back what reserve() has counted.
  void give_up(std::size_t capacity) {
    const std::lock_guard lock(mutex);
    stats.in_use -= capacity;
    if (share) share->give(capacity);
  }
  /// Frees unused buffers for another device.
  void drop(std::size_t bytes) {
    std::vector<Memory> out;
    const std::lock_guard lock(mutex);
    drop_until(stats.pooled - std::min(stats.pooled, bytes), out);
  }
  Memory take_kept(std::size_t capacity, std::size_t& got) {
    const auto found = kept.lower_bound(capacity);
    if (found == kept.end() || found->first > (reuses ? capacity + capacity / 4 : capacity)) return {};
    got = found->first;
    Memory memory = std::move(found->second);
    kept.erase(found);
    stats.pooled -= got;
    count(got);
    return memory;
  }
  void give_back(Memory memory, std::size_t capacity) {
    std::vector<Memory> out;
    {
      const std::lock_guard lock(mutex);
      stats.in_use -= capacity;
      stats.pooled += capacity;
      kept.emplace(capacity, std::move(memory));
      // The limit may have been lowered while the buffer was out.
      drop_until(stats.limit > stats.in_use ? stats.limit - stats.in_use : 0, out);
    }
  }
};

Buffer::Buffer(cl::Buffer memory, std::uint64_t id, std::size_t bytes, std::size_t capacity, std::weak_ptr<void> pool)
    : memory_(std::move(memory)), id_(id), bytes_(bytes), capacity_(capacity), pool_(std::move(pool)) {}

Buffer::~Buffer() {
  if (drivers_gone()) {
    leave_behind(memory_);
    return;
  }
  if (const auto pool = std::static_pointer_cast<MemoryPool::State>(pool_.lock()))
    pool->give_back({std::move(memory_), id_}, capacity_);
}

MemoryPool::MemoryPool(cl::Context context, const cl::Device& device, const DeviceInfo& info)
    : state_(std::make_shared<State>()) {
  state_->huge_pages.emplace(context, device, info);
  state_->context = std::move(context);
  state_->max_allocation = info.max_allocation;
  state_->device_limit = info.global_memory;
  state_->reuses = info.reuses_buffers;
  set_limit(env::bytes("CLNET_MEMORY_LIMIT").value_or(0));
  if (!info.unified_memory) return;
  const auto drop = [&state = *state_](std::size_t bytes) { state.drop(bytes); };
  state_->share.emplace(HostBudget::instance(), state_->stats.limit,
                        info.thread_safe ? std::function<void(std::size_t)>(drop) : nullptr);
}

MemoryPool::~MemoryPool() = default;

BufferPtr MemoryPool::allocate(std::size_t bytes, const std::function<std::string()>& what) {
  require_drivers();
  State& state = *state_;
  bytes = std::max<std::size_t>(bytes, 1);
  if (bytes > state.max_allocation) {
    throw DeviceError(fmt::format("out of memory: {} needs {} ({} bytes), the device's largest allocation is {}", what(),
                                  size(bytes), bytes, size(state.max_allocation)));
  }
  const std::size_t capacity = state.reuses ? std::min(size_class(bytes), state.max_allocation) : bytes;
  const auto exhausted = [&](std::string_view why) {
    const MemoryStats now = stats();
    return DeviceError(fmt::format("out of memory: {} needs {} ({} bytes), in use are {}, the limit is {}{}", what(), size(bytes),
                                   bytes, size(now.in_use), size(now.limit), why));
  };

  const auto others_text = [&] {
    const auto& budget = HostBudget::instance();
    return fmt::format("; all devices on the host's memory have {} of {}", size(budget.taken()), size(budget.limit()));
  };

  bool reserved = false, made_room = false;
  for (int attempts = 2; attempts > 0 && !reserved;) {
    std::function<void(std::size_t)> reclaim;
    std::vector<Memory> out;
    bool fits = false;
    {
      const std::lock_guard lock(state.mutex);
      std::size_t got = 0;
      if (auto kept = state.take_kept(capacity, got); kept.buffer()) {
        return BufferPtr(new Buffer(std::move(kept.buffer), kept.id, bytes, got, state_));
      }
      fits = state.fits(capacity);
      reserved = fits && state.reserve(capacity, out);
      reclaim = state.reclaim;
    }
    if (reserved) break;
    if (fits && !std::exchange(made_room, true)) {
      state.share->make_room(capacity);
    } else {
      if (!reclaim) break;
      if (--attempts > 0) reclaim(capacity);
    }
  }
  if (!reserved) throw exhausted(made_room ? others_text() : "");

  for (int attempt = 0;; ++attempt) {
    try {
      cl::Buffer buffer(state.context, CL_MEM_READ_WRITE, capacity);
      state.huge_pages->put_under(buffer, capacity);
      const std::lock_guard lock(state.mutex);
      ++state.stats.allocations;
      return BufferPtr(new Buffer(std::move(buffer), next_id(), bytes, capacity, state_));
    } catch (const cl::Error& error) {
      if (attempt == 0) {
        // The driver has less than it stated: free all that is kept, and try once more.
        trim();
        continue;
      }
      state.give_up(capacity);
      throw exhausted(fmt::format(" ({} from {})", error_name(error.err()), error.what()));
    }
  }
}

BufferPtr MemoryPool::import(cl_mem memory) {
  return checked("import of a buffer", [&] {
    cl::Buffer buffer(memory, true);
    const std::size_t bytes = buffer.getInfo<CL_MEM_SIZE>();
    return BufferPtr(new Buffer(std::move(buffer), next_id(), bytes, bytes, {}));
  });
}

MemoryStats MemoryPool::stats() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stats;
}

void MemoryPool::set_limit(std::size_t bytes) {
  State& state = *state_;
  if (state.share) state.share->set_limit(bytes ? bytes : state.device_limit);
  std::vector<Memory> out;
  const std::lock_guard lock(state.mutex);
  state.stats.limit = bytes ? bytes : state.device_limit;
  state.drop_until(state.stats.limit > state.stats.in_use ? state.stats.limit - state.stats.in_use : 0, out);
}

std::size_t MemoryPool::limit_beside_others(std::size_t bytes) {
  const auto own = stats().limit;
  if (!state_->share) return own;
  const auto beside = [&] {
    const auto all = HostBudget::instance().limit(), others = state_->share->taken_by_others();
    return std::min(own, all - std::min(all, others));
  };
  const auto limit = beside();
  if (bytes <= limit) return limit;
  state_->share->make_room(bytes);
  return beside();
}

void MemoryPool::trim() {
  std::function<void(std::size_t)> reclaim;
  {
    const std::lock_guard lock(state_->mutex);
    reclaim = state_->reclaim;
  }
  if (reclaim) reclaim(std::numeric_limits<std::size_t>::max());
  std::vector<Memory> out;
  const std::lock_guard lock(state_->mutex);
  state_->drop_until(0, out);
}

void MemoryPool::set_reclaim(std::function<void(std::size_t)> reclaim) {
  const std::lock_guard lock(state_->mutex);
  state_->reclaim = std::move(reclaim);
}

}  // namespace clnet::ocl
