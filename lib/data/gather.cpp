#include "lib/data/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "clnet/error.h"

namespace clnet::data {
namespace {

[[noreturn]] void invalid(const ArrayDataset& dataset, std::string_view reason) {
  throw Error(fmt::format("dataset {}: {}", dataset.name.empty() ? "(without a name)" : dataset.name, reason));
}

void validate_text(const ArrayDataset& dataset) {
  if (!dataset.bytes.empty() || !dataset.floats.empty() || !dataset.labels.empty() || !dataset.targets.empty() ||
      !dataset.mean.empty())
    invalid(dataset, "a text is given beside samples, labels or a normalisation");
  if (dataset.sample_shape.rank() != 1 || dataset.sample_shape[0] < 1)
    invalid(dataset, fmt::format("samples of a text have the shape {{length}}, not {}", to_string(dataset.sample_shape)));
  if (dataset.size() == 0)
    invalid(dataset, fmt::format("a text of {} characters has no sample of {} and one that follows", dataset.text.size(),
                                 dataset.sample_shape[0]));
  for (std::size_t i = 0; i < dataset.text.size(); ++i)
    if (dataset.text[i] < 0 || dataset.text[i] >= dataset.classes)
      invalid(dataset, fmt::format("character {} at place {} is not one of {}", dataset.text[i], i, dataset.classes));
}

}  // namespace

std::int64_t ArrayDataset::size() const {
  if (!targets.empty()) return static_cast<std::int64_t>(targets.size()) / std::max<std::int64_t>(target_shape.numel(), 1);
  if (!is_text()) return static_cast<std::int64_t>(labels.size()) / std::max<std::int64_t>(label_shape.numel(), 1);
  const auto length = sample_shape.rank() == 1 ? std::max<std::int64_t>(sample_shape[0], 1) : 1;
  return (static_cast<std::int64_t>(text.size()) - 1) / length;
}

std::int64_t channels_of(const ArrayDataset& dataset) { return dataset.sample_shape.rank() == 0 ? 1 : dataset.sample_shape[0]; }

void validate(const ArrayDataset& dataset) {
  if (dataset.is_text()) return validate_text(dataset);
  if (!dataset.bytes.empty() && !dataset.floats.empty())
    invalid(dataset, "both bytes and floats are given, expected one of them");
  const auto values = static_cast<std::uint64_t>(dataset.bytes.size() + dataset.floats.size());
  const auto sample = static_cast<std::uint64_t>(dataset.sample_shape.numel());
  const auto [what, given, each] = dataset.targets.empty() ? std::tuple("labels", dataset.labels.size(), dataset.label_shape)
                                                           : std::tuple("targets", dataset.targets.size(), dataset.target_shape);
  if (!dataset.targets.empty() && !dataset.labels.empty()) invalid(dataset, "both labels and targets are given");
  if (each.numel() == 0 || given % static_cast<std::size_t>(each.numel()) != 0)
    invalid(dataset, fmt::format("{} {} are no whole number of samples of {}", given, what, to_string(each)));
  const auto samples = static_cast<std::uint64_t>(given / static_cast<std::size_t>(each.numel()));
  if (sample == 0) invalid(dataset, fmt::format("samples of shape {} are empty", to_string(dataset.sample_shape)));
  if (values % sample != 0 || values / sample != samples)
    invalid(dataset, fmt::format("{} {} need {} values for samples of shape {}, got {}", given, what, samples * sample,
                                 to_string(dataset.sample_shape), values));
  if (dataset.targets.empty() && dataset.labels.empty() && dataset.classes < 1) invalid(dataset, "there are no samples");
  if (dataset.targets.empty() && dataset.classes < 1)
    invalid(dataset, fmt::format("it has {} classes, expected at least 1", dataset.classes));
  for (std::size_t i = 0; i < dataset.labels.size(); ++i)
    if ((dataset.labels[i] < 0 || dataset.labels[i] >= dataset.classes) && (each.rank() == 0 || dataset.labels[i] != -100))
      invalid(dataset, fmt::format("label {} of sample {} is not one of {} classes", dataset.labels[i],
                                   i / static_cast<std::size_t>(each.numel()), dataset.classes));
  if (dataset.mean.empty() && dataset.std.empty()) return;
  const auto channels = static_cast<std::size_t>(channels_of(dataset));
  if (dataset.mean.size() != channels || dataset.std.size() != channels)
    invalid(dataset, fmt::format("mean and std have {} and {} values, expected {}, one per channel", dataset.mean.size(),
                                 dataset.std.size(), channels));
  for (std::size_t c = 0; c < channels; ++c)
    if (!std::isfinite(dataset.mean[c]) || !std::isfinite(dataset.std[c]) || dataset.std[c] <= 0)
      invalid(dataset, fmt::format("mean {} and std {} of channel {}: expected a number, and one above 0", dataset.mean[c],
                                   dataset.std[c], c));
}

Gather::Gather(const ArrayDataset& dataset)
    : dataset_(dataset), planes_(dataset.mean.empty() ? 1 : static_cast<std::size_t>(channels_of(dataset))) {
  plane_ = static_cast<std::size_t>(dataset.sample_shape.numel()) / planes_;
  if (dataset.bytes.empty()) return;
  table_.resize(256 * planes_);
  for (std::size_t i = 0; i < table_.size(); ++i) {
    const float value = static_cast<float>(i % 256) / 255.0f;
    table_[i] = dataset.mean.empty() ? value : (value - dataset.mean[i / 256]) / dataset.std[i / 256];
  }
}

void Gather::images(std::span<const std::int64_t> indices, float* out) const {
  for (const auto index : indices) {
    const auto first = static_cast<std::size_t>(index) * planes_ * plane_;
    for (std::size_t p = 0; p < planes_; ++p, out += plane_) {
      if (!table_.empty()) {
        const auto* in = dataset_.bytes.data() + first + p * plane_;
        const float* table = table_.data() + 256 * p;
        for (std::size_t i = 0; i < plane_; ++i) out[i] = table[in[i]];
      } else {
        const float* in = dataset_.floats.data() + first + p * plane_;
        if (dataset_.mean.empty()) {
          std::copy(in, in + plane_, out);
        } else {
          const float mean = dataset_.mean[p], std = dataset_.std[p];
          for (std::size_t i = 0; i < plane_; ++i) out[i] = (in[i] - mean) / std;
        }
      }
    }
  }
}

void Gather::labels(std::span<const std::int64_t> indices, std::int32_t* out) const {
  const auto count = dataset_.label_shape.numel();
  for (const auto index : indices) out = std::copy_n(dataset_.labels.begin() + index * count, count, out);
}

void Gather::targets(std::span<const std::int64_t> indices, float* out) const {
  const auto count = dataset_.target_shape.numel();
  for (const auto index : indices) out = std::copy_n(dataset_.targets.begin() + index * count, count, out);
}

void Gather::pieces(std::span<const std::int64_t> indices, std::int64_t shift, std::int64_t ahead, std::int32_t* out) const {
  const auto length = dataset_.sample_shape[0], last = static_cast<std::int64_t>(dataset_.text.size()) - length - 1;
  for (const auto index : indices)
    out = std::copy_n(dataset_.text.begin() + std::min(index * length + shift, last) + ahead, length, out);
}

void Gather::characters(std::span<const std::int64_t> indices, std::int64_t shift, std::int32_t* out) const {
  pieces(indices, shift, 0, out);
}

void Gather::next_characters(std::span<const std::int64_t> indices, std::int64_t shift, std::int32_t* out) const {
  pieces(indices, shift, 1, out);
}

Example Gather::example(std::int64_t index, std::int64_t shift) const {
  const std::span one(&index, 1);
  Example result;
  if (dataset_.is_text()) {
    for (const std::int64_t ahead : {0, 1}) {
      Array& array = result.emplace_back(dataset_.sample_shape, Dtype::i32);
      pieces(one, shift, ahead, array.values<std::int32_t>().data());
    }
    return result;
  }
  images(one, result.emplace_back(dataset_.sample_shape, Dtype::f32).values<float>().data());
  if (dataset_.targets.empty())
    labels(one, result.emplace_back(dataset_.label_shape, Dtype::i32).values<std::int32_t>().data());
  else
    targets(one, result.emplace_back(dataset_.target_shape, Dtype::f32).values<float>().data());
  return result;
}

}  // namespace clnet::data
