// Threads that make items ahead of a consumer, who takes them in order.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace clnet::data {

/// Set when nobody wants the items any more: a step that takes long looks at it, and may throw Abandoned.
using Stopping = std::atomic<bool>;
struct Abandoned {};

/// An item is made in two steps: one claim after the other tells which is next, and several threads make items of their claims.
/// So the items and their order do not depend on the number of threads.
template <class Claim, class Item>
class OrderedWorkers {
 public:
  struct Steps {
    std::function<std::optional<Claim>(const Stopping&)> claim;  ///< none: that was the last one
    std::function<Item(Claim, const Stopping&)> make;
  };

  /// Without workers the consumer's thread does the work. At most workers + prefetch items are claimed and not taken.
  OrderedWorkers(Steps steps, std::int64_t workers, std::int64_t prefetch)
      : steps_(std::move(steps)), ahead_(workers + prefetch) {
    try {
      for (std::int64_t i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
    } catch (...) {
      stop();  // no destructor runs for an object that was not completed
      throw;
    }
  }
  ~OrderedWorkers() { stop(); }
  OrderedWorkers(const OrderedWorkers&) = delete;
  OrderedWorkers& operator=(const OrderedWorkers&) = delete;

  /// Waits for the next item; none at the end. Rethrows what its steps threw, and after that there is none.
  std::optional<Item> take() {
    if (threads_.empty()) return make_here();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_.contains(taken_) || taken_ >= end_; });
    if (taken_ >= end_) return std::nullopt;
    auto node = ready_.extract(taken_);
    ++taken_;
    changed_.notify_all();
    lock.unlock();
    if (node.mapped().error) std::rethrow_exception(node.mapped().error);
    return std::move(node.mapped().item);
  }

 private:
  struct Outcome {
    std::optional<Item> item;
    std::exception_ptr error;
  };

  std::optional<Item> make_here() {
    if (taken_ >= end_) return std::nullopt;
    const auto number = taken_++;
    end_ = number;  // where a step throws
    auto claim = steps_.claim(stopping_);
    if (!claim) return std::nullopt;
    auto item = steps_.make(std::move(*claim), stopping_);
    end_ = endless;
    return item;
  }

  void work() {
    for (;;) {
      std::int64_t number = 0;
      std::optional<Claim> claim;
      Outcome outcome;
      {
        const std::lock_guard turn(turn_);
        {
          std::unique_lock lock(mutex_);
          changed_.wait(lock, [&] { return stopping_ || claimed_ >= end_ || claimed_ < taken_ + ahead_; });
          if (stopping_ || claimed_ >= end_) return;
          number = claimed_++;
        }
        try {
          claim = steps_.claim(stopping_);
        } catch (...) {
          outcome.error = std::current_exception();
        }
        if (!claim && !outcome.error) {
          const std::lock_guard lock(mutex_);
          end_ = std::min(end_, number);
          changed_.notify_all();
          return;
        }
        if (outcome.error) {
          finish(number, std::move(outcome));
          return;
        }
      }
      try {
        outcome.item = steps_.make(std::move(*claim), stopping_);
      } catch (...) {
        outcome.error = std::current_exception();
      }
      finish(number, std::move(outcome));
    }
  }

  void finish(std::int64_t number, Outcome outcome) {
    const std::lock_guard lock(mutex_);
    if (outcome.error) end_ = std::min(end_, number + 1);
    ready_.emplace(number, std::move(outcome));
    changed_.notify_all();
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

  static constexpr auto endless = std::numeric_limits<std::int64_t>::max();

  const Steps steps_;
  const std::int64_t ahead_;
  Stopping stopping_ = false;
  std::mutex turn_;   ///< held while claiming
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::map<std::int64_t, Outcome> ready_;
  std::int64_t claimed_ = 0, taken_ = 0;
  std::int64_t end_ = endless;        ///< no item has this number or a larger one
  std::vector<std::thread> threads_;  ///< last: they use all that is above
};

}  // namespace clnet::data
