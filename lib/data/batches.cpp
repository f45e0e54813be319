#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "clnet/data.h"
#include "clnet/device.h"
#include "clnet/error.h"
#include "lib/data/augment.h"
#include "lib/data/batch_maker.h"
#include "lib/data/gather.h"
#include "lib/data/ordered_workers.h"

namespace clnet::data {

/// The threads that make the batches, and the batch in the consumer's hands. A device that takes one thread only has no other
/// than the consumer's.
class Batches::Iterator::Loader {
 public:
  Loader(const Dataset& dataset, const BatchOptions& options)
      : maker_(make_batch_maker(dataset, options, Device::current())),
        workers_({[this](const Stopping& stopping) { return maker_->claim(stopping); },
                  [this](Claim claim, const Stopping& stopping) { return made(std::move(claim), stopping); }},
                 Device::current().info().thread_safe ? options.workers : 0, options.prefetch) {
    advance();
  }

  bool at_end() const { return !current_; }
  const Batch& current() const { return *current_; }
  /// Waits for the next batch. Rethrows an exception of the threads.
  void advance() {
    current_.reset();
    current_ = workers_.take();
  }

 private:
  Batch made(Claim claim, const Stopping& stopping) const {
    const auto rows = claim.rows;
    auto state = std::move(claim.state);
    Batch batch = rows.count == 0 ? Batch() : maker_->make(std::move(claim), stopping);
    batch.rows = rows;
    batch.stream_state = std::move(state);
    return batch;
  }

  const std::unique_ptr<BatchMaker> maker_;
  std::optional<Batch> current_;
  OrderedWorkers<Claim, Batch> workers_;  ///< last: its threads use the maker
};

Batch Batches::Iterator::operator*() const {
  if (!loader_ || loader_->at_end()) throw Error("batches: there is no batch behind the last one");
  return loader_->current();
}

Batches::Iterator& Batches::Iterator::operator++() {
  if (!loader_ || loader_->at_end()) throw Error("batches: there is no batch behind the last one");
  loader_->advance();
  return *this;
}

bool Batches::Iterator::operator==(const Iterator& other) const {
  const bool ended = !loader_ || loader_->at_end(), other_ended = !other.loader_ || other.loader_->at_end();
  return ended || other_ended ? ended == other_ended : loader_ == other.loader_;
}

Batches::Batches(const Dataset& dataset, BatchOptions options) : dataset_(&dataset), options_(std::move(options)) {
  constexpr std::int64_t most_workers = 256, most_prefetched = 65536;
  constexpr auto any = std::numeric_limits<std::int64_t>::max();
  const auto require_range = [](std::string_view name, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value < least) throw Error(fmt::format("batches: {} is {}, expected at least {}", name, value, least));
    if (value > most) throw Error(fmt::format("batches: {} is {}, expected at most {}", name, value, most));
  };
  require_range("batch_size", options_.batch_size, 1, any);
  require_range("start", options_.start, 0, any);
  require_range("workers", options_.workers, 0, most_workers);
  require_range("prefetch", options_.prefetch, 0, most_prefetched);
  const bool is_stream = dataset.size() == Dataset::unknown;
  if (dataset.size() < 0 && !is_stream) throw Error(fmt::format("batches: the dataset's size is {}", dataset.size()));
  if (is_stream && (options_.shuffle || options_.length))
    throw Error("batches: a stream has an order of its own, and cannot be shuffled or sorted by length");
  if (options_.sampler) {
    if (is_stream) throw Error("batches: a stream has an order of its own, and takes no sampler");
    if (options_.shuffle) throw Error("batches: a sampler gives the order, so shuffle must be false");
    if (!options_.sampler->order || options_.sampler->size < 0)
      throw Error("batches: the sampler has no order, or a negative size");
  }
  if (options_.length)
    options_.length = [length = std::move(options_.length), &dataset](std::int64_t index) {
      try {
        return length(index);
      } catch (...) {
        rethrow_of(safe_name(dataset, index));
      }
    };
  if (options_.stream_state && !is_stream) throw Error("batches: stream_state is for streams, and this dataset has a size");
  if (options_.share) (void)rows_of(*options_.share, 0);
  if (const auto* arrays = dynamic_cast<const ArrayDataset*>(&dataset)) {
    validate(*arrays);
    validate(options_.augmentation, *arrays);
  } else if (const auto& change = options_.augmentation; change.flip || change.shift != 0 || change.change) {
    throw Error("batches: augmentation is for datasets in memory; others change their samples in get()");
  }
}

Batches::Iterator Batches::begin() const {
  Iterator iterator;
  iterator.loader_ = std::make_shared<Iterator::Loader>(*dataset_, options_);
  return iterator;
}

Batches::Iterator Batches::end() const { return {}; }

std::int64_t Batches::size() const {
  if (dataset_->size() == Dataset::unknown) return Dataset::unknown;
  const auto samples = used_samples(*dataset_, options_);
  const auto all = samples / options_.batch_size + (samples % options_.batch_size != 0 ? 1 : 0);
  return std::max<std::int64_t>(0, all - options_.start);
}

const Tensor& Batch::operator[](std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw Error(names.empty() ? fmt::format("batch: there is no tensor '{}', as the samples' arrays have no names", name)
                              : fmt::format("batch: there is no tensor '{}' among [{}]", name, fmt::join(names, ", ")));
  return (*this)[static_cast<std::size_t>(found - names.begin())];
}

Batches batches(const Dataset& dataset, const BatchOptions& options) { return {dataset, options}; }

}  // namespace clnet::data
