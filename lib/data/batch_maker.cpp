#include "lib/data/batch_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string_view>
#include <utility>

#include "clnet/data/arrays.h"
#include "clnet/error.h"
#include "lib/data/array_batches.h"
#include "lib/data/epoch_order.h"
#include "lib/exec/upload.h"

namespace clnet::data {
namespace {

/// `text` behind the name, which comes once: the text of a file's error begins with it, too.
std::string placed(const std::string& name, std::string_view text) {
  const auto prefix = name + ": ";
  return text.starts_with(prefix) ? std::string(text) : prefix + std::string(text);
}

std::vector<Array> collated(std::vector<Example> samples, const Collate& collate, const std::string& names) {
  try {
    return collate ? collate(std::move(samples)) : stack_collate(std::move(samples));
  } catch (...) {
    rethrow_of(names);
  }
}

std::string span_of(const std::string& first, const std::string& last) {
  return first == last ? first : fmt::format("batch of {} to {}", first, last);
}

/// A dataset of the caller's own.
class SampleBatches : public BatchMaker {
 public:
  SampleBatches(const Dataset& dataset, const BatchOptions& options, const Device& device)
      : dataset_(dataset), options_(options), device_(device), order_(dataset.size(), options) {}

  std::optional<Claim> claim(const Stopping&) override {
    auto indices = order_.next();
    if (indices.empty()) return std::nullopt;
    Claim claim{.indices = std::move(indices), .samples = {}, .state = {}};
    claim.keep(options_.share);
    return claim;
  }

  Batch make(Claim claim, const Stopping& stopping) const override {
    const DeviceScope scope(device_);
    std::vector<Example> samples;
    samples.reserve(claim.indices.size());
    for (const auto index : claim.indices) {
      if (stopping) throw Abandoned();
      try {
        samples.push_back(dataset_.get(index, SampleRandom(options_.seed, options_.epoch, index).next()));
      } catch (...) {
        rethrow_of(safe_name(dataset_, index));
      }
    }
    const auto names = span_of(safe_name(dataset_, claim.indices.front()), safe_name(dataset_, claim.indices.back()));
    return uploaded(collated(std::move(samples), options_.collate, names), device_);
  }

 private:
  const Dataset& dataset_;
  const BatchOptions options_;
  const Device device_;
  EpochBatches order_;
};

class StreamBatches : public BatchMaker {
 public:
  StreamBatches(const Dataset& dataset, const BatchOptions& options, const Device& device)
      : dataset_(dataset), options_(options), device_(device) {}

  std::optional<Claim> claim(const Stopping& stopping) override {
    const DeviceScope scope(device_);
    if (!stream_) open(stopping);
    Claim claim{.indices = {}, .samples = {}, .first = at_, .state = {}};
    for (std::int64_t i = 0; i < options_.batch_size && !ended_; ++i)
      if (auto sample = next(stopping)) claim.samples.push_back(std::move(*sample));
    if (claim.samples.empty()) return std::nullopt;
    if (ended_ && options_.drop_last && std::cmp_less(claim.samples.size(), options_.batch_size)) return std::nullopt;
    try {
      claim.state = stream_->state();
    } catch (...) {
      rethrow_of(fmt::format("the stream's state() behind {} samples", at_));
    }
    claim.keep(options_.share);
    return claim;
  }

  Batch make(Claim claim, const Stopping& stopping) const override {
    if (stopping) throw Abandoned();
    const DeviceScope scope(device_);
    const auto last = claim.first + static_cast<std::int64_t>(claim.samples.size()) - 1;
    const auto names = span_of(fmt::format("sample {} of the stream", claim.first), fmt::format("sample {}", last));
    return uploaded(collated(std::move(claim.samples), options_.collate, names), device_);
  }

 private:
  void open(const Stopping& stopping) {
    constexpr std::int64_t of_the_stream = -1;
    stream_ = dataset_.iterate(SampleRandom(options_.seed, options_.epoch, of_the_stream).next());
    if (!stream_) throw Error("batches: iterate() gave no stream");
    if (options_.stream_state) {
      try {
        stream_->restore(*options_.stream_state);
      } catch (...) {
        rethrow_of("the stream's restore()");
      }
      return;
    }
    // A quotient: the product of hostile numbers would overflow.
    for (std::int64_t skipped = 0; skipped / options_.batch_size < options_.start && !ended_; ++skipped) next(stopping);
  }

  std::optional<Example> next(const Stopping& stopping) {
    if (stopping) throw Abandoned();
    try {
      auto sample = stream_->next();
      ended_ = !sample;
      at_ += sample ? 1 : 0;
      return sample;
    } catch (...) {
      rethrow_of(fmt::format("sample {} of the stream", at_));
    }
  }

  const Dataset& dataset_;
  const BatchOptions options_;
  const Device device_;
  std::unique_ptr<Stream> stream_;
  std::int64_t at_ = 0;  ///< of the next sample
  bool ended_ = false;
};

Tensor uploaded(Array array, const Device& device) {
  const auto spec = array.spec();
  if (std::cmp_not_equal(array.bytes.size(), spec.bytes()))
    throw ShapeError(
        fmt::format("batches: an array of {} bytes is no {}, which has {}", array.bytes.size(), to_string(spec), spec.bytes()));
  if (!is_floating(spec.dtype)) return exec::upload(spec, device, std::move(array.bytes));
  return exec::upload(spec, device, [&](void* out) { std::memcpy(out, array.bytes.data(), array.bytes.size()); });
}

}  // namespace

void Claim::keep(const std::optional<Share>& share) {
  const auto all = static_cast<std::int64_t>(std::max(indices.size(), samples.size()));
  rows = share ? rows_of(*share, all) : Rows{0, all, all};
  if (!share) return;
  const auto part = [&](auto& list) {
    if (list.empty()) return;
    list.erase(list.begin() + rows.first + rows.count, list.end());
    list.erase(list.begin(), list.begin() + rows.first);
  };
  part(indices);
  part(samples);
  first += rows.first;
}

void rethrow_of(const std::string& name) {
  try {
    throw;
  } catch (const Abandoned&) {
    throw;
  } catch (const FileError& error) {
    std::throw_with_nested(FileError(placed(name, error.what())));
  } catch (const std::exception& error) {
    std::throw_with_nested(Error(placed(name, error.what())));
  } catch (...) {
    std::throw_with_nested(Error(fmt::format("{}: an exception that is no std::exception", name)));
  }
}

std::string safe_name(const Dataset& dataset, std::int64_t index) {
  try {
    return dataset.name_of(index);
  } catch (const std::exception& error) {
    return fmt::format("sample {}", index);
  }
}

std::int64_t used_samples(const Dataset& dataset, const BatchOptions& options) {
  const auto size = options.sampler ? options.sampler->size : dataset.size();
  return options.drop_last ? size - size % options.batch_size : size;
}

Batch uploaded(std::vector<Array> arrays, const Device& device) {
  if (arrays.empty()) throw Error("batches: a batch has no arrays");
  Batch batch;
  if (std::any_of(arrays.begin(), arrays.end(), [](const Array& array) { return !array.name.empty(); }))
    for (auto& array : arrays) batch.names.push_back(std::move(array.name));
  batch.images = uploaded(std::move(arrays[0]), device);
  if (arrays.size() > 1) batch.labels = uploaded(std::move(arrays[1]), device);
  for (std::size_t i = 2; i < arrays.size(); ++i) batch.others.push_back(uploaded(std::move(arrays[i]), device));
  return batch;
}

std::unique_ptr<BatchMaker> make_batch_maker(const Dataset& dataset, const BatchOptions& options, const Device& device) {
  if (const auto* arrays = dynamic_cast<const ArrayDataset*>(&dataset)) return make_array_batches(*arrays, options, device);
  if (dataset.size() == Dataset::unknown) return std::make_unique<StreamBatches>(dataset, options, device);
  return std::make_unique<SampleBatches>(dataset, options, device);
}

}  // namespace clnet::data
