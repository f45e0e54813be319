#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "clnet/data.h"
#include "clnet/device.h"
#include "clnet/error.h"
#include "lib/data/augment.h"
#include "lib/data/epoch_order.h"
#include "lib/data/gather.h"
#include "lib/exec/upload.h"

namespace clnet::data {
namespace {

/// Batches that wait for their use: one more is in the consumer's hands and one in the making.
constexpr std::size_t queue_limit = 2;

/// The number of samples that take part in an epoch's batches.
std::int64_t used_samples(const Dataset& dataset, const BatchOptions& options) {
  return options.drop_last ? dataset.size() - dataset.size() % options.batch_size : dataset.size();
}

}  // namespace

/// The thread that makes the batches, and the queue between it and the consumer. A device that takes one thread only has no other
/// than the consumer's.
class Batches::Iterator::Worker {
 public:
  Worker(const Dataset& dataset, const BatchOptions& options)
      : dataset_(dataset),
        options_(options),
        device_(Device::current()),
        gather_(dataset),
        augmenter_(dataset, options.augmentation, options.seed, options.epoch),
        thread_(device_.info().thread_safe ? std::thread([this] { work(); }) : std::thread()) {
    try {
      advance();
    } catch (...) {
      stop();  // no destructor runs for an object that was not completed
      throw;
    }
  }
  ~Worker() { stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  bool at_end() const { return !current_; }
  const Batch& current() const { return *current_; }

  /// Waits for the next batch. Rethrows what the thread threw.
  void advance() {
    current_.reset();
    if (!thread_.joinable()) {
      current_ = next();
      return;
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !queue_.empty() || finished_; });
    if (!queue_.empty()) {
      current_ = std::move(queue_.front());
      queue_.pop_front();
      changed_.notify_all();
    } else if (error_) {
      std::rethrow_exception(std::exchange(error_, nullptr));
    }
  }

 private:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void work() {
    std::exception_ptr error;
    try {
      make_batches();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    error_ = error;
    finished_ = true;
    changed_.notify_all();
  }

  void make_batches() {
    while (auto batch = next()) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return queue_.size() < queue_limit || stopping_; });
      if (stopping_) return;
      queue_.push_back(std::move(*batch));
      changed_.notify_all();
    }
  }

  /// None at the epoch's end.
  std::optional<Batch> next() {
    const auto end = used_samples(dataset_, options_);
    if (order_.empty()) {
      if (options_.start > end / options_.batch_size) return {};  // also keeps the product below from overflowing
      order_ = epoch_order(dataset_.size(), options_.shuffle, options_.seed, options_.epoch);
      if (dataset_.is_text()) shift_ = epoch_shift(dataset_.sample_shape[0], options_.shuffle, options_.seed, options_.epoch);
      first_ = options_.start * options_.batch_size;
    }
    if (first_ >= end) return {};
    const auto count = std::min(options_.batch_size, end - first_);
    const std::span indices(order_.data() + first_, static_cast<std::size_t>(count));
    first_ += count;
    return make(indices);
  }

  Batch make(std::span<const std::int64_t> indices) const {
    std::vector<std::int64_t> extents{static_cast<std::int64_t>(indices.size())};
    extents.insert(extents.end(), dataset_.sample_shape.begin(), dataset_.sample_shape.end());
    if (dataset_.is_text()) {
      const Spec spec{Shape(std::move(extents)), Dtype::i32};
      std::vector<std::byte> next(static_cast<std::size_t>(spec.bytes()));
      gather_.next_characters(indices, shift_, reinterpret_cast<std::int32_t*>(next.data()));
      return {
          exec::upload(spec, device_, [&](void* out) { gather_.characters(indices, shift_, static_cast<std::int32_t*>(out)); }),
          exec::upload(spec, device_, std::move(next))};
    }
    const bool has_targets = !dataset_.targets.empty();
    std::vector<std::int64_t> label_extents{static_cast<std::int64_t>(indices.size())};
    const auto& each = has_targets ? dataset_.target_shape : dataset_.label_shape;
    label_extents.insert(label_extents.end(), each.begin(), each.end());
    // An augmentation changes a sample's labels along with its values.
    const auto count = indices.size() * static_cast<std::size_t>(each.numel());
    std::vector<std::byte> label_bytes(has_targets ? 0 : count * sizeof(std::int32_t));
    const std::span labels(reinterpret_cast<std::int32_t*>(label_bytes.data()), label_bytes.size() / sizeof(std::int32_t));
    std::vector<float> targets(has_targets ? count : 0);
    gather_.labels(has_targets ? std::span<const std::int64_t>{} : indices, labels.data());
    gather_.targets(has_targets ? indices : std::span<const std::int64_t>{}, targets.data());
    Batch batch;
    batch.images = exec::upload({Shape(std::move(extents)), Dtype::f32}, device_, [&](void* out) {
      auto* values = static_cast<float*>(out);
      gather_.images(indices, values);
      if (!augmenter_) return;
      const auto part = [&]<class T>(std::span<T> all, std::size_t i) {
        const auto size = all.size() / indices.size();
        return all.subspan(i * size, size);
      };
      const std::span all(values, indices.size() * static_cast<std::size_t>(dataset_.sample_shape.numel()));
      for (std::size_t i = 0; i < indices.size(); ++i)
        augmenter_(indices[i], {part(all, i), part(labels, i), part(std::span(targets), i)});
    });
    if (has_targets)
      batch.labels = exec::upload({Shape(std::move(label_extents)), Dtype::f32}, device_,
                                  [&](void* out) { std::copy(targets.begin(), targets.end(), static_cast<float*>(out)); });
    else
      batch.labels = exec::upload({Shape(std::move(label_extents)), Dtype::i32}, device_, std::move(label_bytes));
    return batch;
  }

  const Dataset& dataset_;
  const BatchOptions options_;
  const Device device_;  ///< the consumer's at its begin()
  const Gather gather_;
  const Augmenter augmenter_;
  std::vector<std::int64_t> order_;  ///< of the samples; this and the two below are of the thread that makes batches
  std::int64_t first_ = 0;           ///< of the next batch
  std::int64_t shift_ = 0;           ///< of a text's samples
  std::optional<Batch> current_;     ///< the consumer's

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::deque<Batch> queue_;
  std::exception_ptr error_;
  bool finished_ = false, stopping_ = false;

  std::thread thread_;  ///< last: it uses all that is above
};

Batch Batches::Iterator::operator*() const {
  if (!worker_ || worker_->at_end()) throw Error("batches: there is no batch behind the last one");
  return worker_->current();
}

Batches::Iterator& Batches::Iterator::operator++() {
  if (!worker_ || worker_->at_end()) throw Error("batches: there is no batch behind the last one");
  worker_->advance();
  return *this;
}

bool Batches::Iterator::operator==(const Iterator& other) const {
  const bool ended = !worker_ || worker_->at_end(), other_ended = !other.worker_ || other.worker_->at_end();
  return ended || other_ended ? ended == other_ended : worker_ == other.worker_;
}

Batches::Batches(const Dataset& dataset, BatchOptions options) : dataset_(&dataset), options_(std::move(options)) {
  if (options_.batch_size < 1) throw Error(fmt::format("batches: batch_size is {}, expected at least 1", options_.batch_size));
  if (options_.start < 0) throw Error(fmt::format("batches: start is {}, expected at least 0", options_.start));
  validate(dataset);
  validate(options_.augmentation, dataset);
}

Batches::Iterator Batches::begin() const {
  Iterator iterator;
  iterator.worker_ = std::make_shared<Iterator::Worker>(*dataset_, options_);
  return iterator;
}

Batches::Iterator Batches::end() const { return {}; }

std::int64_t Batches::size() const {
  const auto samples = used_samples(*dataset_, options_);
  const auto all = samples / options_.batch_size + (samples % options_.batch_size != 0 ? 1 : 0);
  return std::max<std::int64_t>(0, all - options_.start);
}

Batches batches(const Dataset& dataset, const BatchOptions& options) { return {dataset, options}; }

}  // namespace clnet::data
