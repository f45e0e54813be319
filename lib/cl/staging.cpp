#include "lib/cl/staging.h"

#include <deque>
#include <mutex>
#include <utility>

#include "lib/base/log.h"
#include "lib/cl/check.h"
#include "lib/cl/pinned.h"

namespace clnet::ocl {

namespace {

constexpr std::size_t most_staged = std::size_t{128} << 20;

}  // namespace

struct Staging::Kept {
  cl::Context context;
  cl::CommandQueue queue;  ///< none where plain memory is as good
  std::mutex mutex;
  std::deque<std::unique_ptr<Pinned>> blocks;
  std::size_t bytes = 0;

  std::unique_ptr<Pinned> take(std::size_t wanted) {
    {
      const std::lock_guard lock(mutex);
      for (auto it = blocks.begin(); it != blocks.end(); ++it) {
        if ((*it)->bytes() < wanted || (*it)->bytes() > 2 * wanted) continue;
        auto found = std::move(*it);
        blocks.erase(it);
        bytes -= found->bytes();
        return found;
      }
    }
    try {
      return std::make_unique<Pinned>(context, queue, wanted, CL_MAP_READ | CL_MAP_WRITE);
    } catch (const cl::Error& error) {
      logging::print(logging::Level::plan, "pinned memory of {} bytes: {} from {}", wanted, error_name(error.err()),
                     error.what());
      return nullptr;
    }
  }

  void give_back(std::unique_ptr<Pinned> block) {
    std::deque<std::unique_ptr<Pinned>> oldest;
    const std::lock_guard lock(mutex);
    bytes += block->bytes();
    blocks.push_back(std::move(block));
    while (bytes > most_staged) {
      bytes -= blocks.front()->bytes();
      oldest.push_back(std::move(blocks.front()));
      blocks.pop_front();
    }
  }

  void free_all() {
    std::deque<std::unique_ptr<Pinned>> old;
    const std::lock_guard lock(mutex);
    old.swap(blocks);
    bytes = 0;
  }
};

Staging::Staging(Context& context) : kept_(std::make_shared<Kept>()) {
  if (context.info().unified_memory) return;
  kept_->context = context.context();
  kept_->queue = checked("a queue for pinned memory", [&] { return cl::CommandQueue(context.context(), context.device()); });
}

Staging::~Staging() { trim(); }

std::shared_ptr<std::byte[]> Staging::take(std::size_t bytes) {
  auto block = bytes > 0 && kept_->queue() ? kept_->take(bytes) : nullptr;
  if (!block) return std::make_shared_for_overwrite<std::byte[]>(bytes);
  auto* address = block->address();
  // Without a place to go back to, a block is freed.
  return {address, [block = std::move(block), keeper = std::weak_ptr(kept_)](std::byte*) mutable {
            if (const auto kept = keeper.lock()) kept->give_back(std::move(block));
          }};
}

void Staging::trim() { kept_->free_all(); }

void Staging::reclaim(std::size_t) { trim(); }

}  // namespace clnet::ocl
