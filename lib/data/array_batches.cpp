#include "lib/data/array_batches.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "lib/data/augment.h"
#include "lib/data/epoch_order.h"
#include "lib/data/gather.h"
#include "lib/exec/upload.h"

namespace clnet::data {
namespace {

Shape of_batch(std::size_t samples, const Shape& each) {
  std::vector<std::int64_t> extents{static_cast<std::int64_t>(samples)};
  extents.insert(extents.end(), each.begin(), each.end());
  return Shape(std::move(extents));
}

class ArrayBatches : public BatchMaker {
 public:
  ArrayBatches(const ArrayDataset& dataset, const BatchOptions& options, const Device& device)
      : dataset_(dataset),
        options_(options),
        device_(device),
        gather_(dataset),
        augmenter_(dataset, options.augmentation, options.seed, options.epoch),
        shift_(dataset.is_text() ? epoch_shift(dataset.sample_shape[0], options.shuffle, options.seed, options.epoch) : 0),
        order_(dataset.size(), options) {}

  std::optional<Claim> claim(const Stopping&) override {
    auto indices = order_.next();
    if (indices.empty()) return std::nullopt;
    Claim claim{.indices = std::move(indices), .samples = {}, .state = {}};
    claim.keep(options_.share);
    return claim;
  }

  Batch make(Claim claim, const Stopping& stopping) const override {
    if (stopping) throw Abandoned();
    const DeviceScope scope(device_);
    if (options_.collate) return made_of_samples(claim.indices);
    return dataset_.is_text() ? of_text(claim.indices) : of_samples(claim.indices);
  }

 private:
  /// As the caller's own datasets.
  Batch made_of_samples(std::span<const std::int64_t> indices) const {
    std::vector<Example> samples;
    for (const auto index : indices) {
      samples.push_back(gather_.example(index, shift_));
      if (!augmenter_) continue;
      auto &values = samples.back()[0], &answer = samples.back()[1];
      Sample sample{.values = values.values<float>(), .labels = {}, .targets = {}};
      if (answer.dtype == Dtype::f32)
        sample.targets = answer.values<float>();
      else
        sample.labels = answer.values<std::int32_t>();
      augmenter_(index, sample);
    }
    return uploaded(options_.collate(std::move(samples)), device_);
  }

  Batch of_text(std::span<const std::int64_t> indices) const {
    const Spec spec{of_batch(indices.size(), dataset_.sample_shape), Dtype::i32};
    std::vector<std::byte> next(static_cast<std::size_t>(spec.bytes()));
    gather_.next_characters(indices, shift_, reinterpret_cast<std::int32_t*>(next.data()));
    return {exec::upload(spec, device_, [&](void* out) { gather_.characters(indices, shift_, static_cast<std::int32_t*>(out)); }),
            exec::upload(spec, device_, std::move(next))};
  }

  Batch of_samples(std::span<const std::int64_t> indices) const {
    const bool has_targets = !dataset_.targets.empty();
    const auto& each = has_targets ? dataset_.target_shape : dataset_.label_shape;
    // An augmentation changes a sample's labels along with its values.
    const auto count = indices.size() * static_cast<std::size_t>(each.numel());
    std::vector<std::byte> label_bytes(has_targets ? 0 : count * sizeof(std::int32_t));
    const std::span labels(reinterpret_cast<std::int32_t*>(label_bytes.data()), label_bytes.size() / sizeof(std::int32_t));
    std::vector<float> targets(has_targets ? count : 0);
    gather_.labels(has_targets ? std::span<const std::int64_t>{} : indices, labels.data());
    gather_.targets(has_targets ? indices : std::span<const std::int64_t>{}, targets.data());
    Batch batch;
    batch.images = exec::upload({of_batch(indices.size(), dataset_.sample_shape), Dtype::f32}, device_, [&](void* out) {
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
    const auto label_shape = of_batch(indices.size(), each);
    if (has_targets)
      batch.labels = exec::upload({label_shape, Dtype::f32}, device_,
                                  [&](void* out) { std::copy(targets.begin(), targets.end(), static_cast<float*>(out)); });
    else
      batch.labels = exec::upload({label_shape, Dtype::i32}, device_, std::move(label_bytes));
    return batch;
  }

  const ArrayDataset& dataset_;
  const BatchOptions options_;
  const Device device_;
  const Gather gather_;
  const Augmenter augmenter_;
  const std::int64_t shift_;  ///< of a text's samples
  EpochBatches order_;
};

}  // namespace

std::unique_ptr<BatchMaker> make_array_batches(const ArrayDataset& dataset, const BatchOptions& options, const Device& device) {
  return std::make_unique<ArrayBatches>(dataset, options, device);
}

}  // namespace clnet::data
