#include "clnet/data/samplers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "clnet/error.h"
#include "lib/base/checksum.h"
#include "lib/data/epoch_order.h"
#include "lib/data/gather.h"

namespace clnet::data {
namespace {

SampleRandom sampler_random(std::uint64_t seed, std::uint64_t epoch) {
  constexpr std::int64_t of_the_sampler = -2;
  return {seed, epoch, of_the_sampler};
}

std::vector<std::int64_t> drawn_again(const std::vector<double>& sums, std::int64_t samples, SampleRandom random) {
  std::vector<std::int64_t> order;
  order.reserve(static_cast<std::size_t>(samples));
  for (std::int64_t i = 0; i < samples; ++i)
    // The product may round up to the whole sum, behind which there is nothing.
    order.push_back(std::upper_bound(sums.begin(), std::prev(sums.end()), random.inside_unit() * sums.back()) - sums.begin());
  return order;
}

/// P. Efraimidis, P. Spirakis: Weighted random sampling with a reservoir, 2006: the largest of random^(1/weight).
std::vector<std::int64_t> drawn_once(const std::vector<double>& weights, std::int64_t samples, SampleRandom random) {
  std::vector<std::pair<double, std::int64_t>> keys;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (const double chance = std::log(random.inside_unit()); weights[i] > 0)
      keys.emplace_back(-chance / weights[i], static_cast<std::int64_t>(i));
  std::sort(keys.begin(), keys.end());
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < samples; ++i) order.push_back(keys[static_cast<std::size_t>(i)].second);
  return order;
}

void require_size(const Dataset& dataset, std::string_view what) {
  if (dataset.size() == Dataset::unknown) throw Error(fmt::format("{}: a stream has no samples by number", what));
}

/// These samples of values that lie one after the other.
template <class T>
std::vector<T> selected(const std::vector<T>& values, std::size_t each, std::span<const std::int64_t> indices) {
  std::vector<T> result;
  if (values.empty()) return result;
  result.reserve(each * indices.size());
  for (const auto index : indices) {
    const auto begin = values.begin() + index * static_cast<std::ptrdiff_t>(each);
    result.insert(result.end(), begin, begin + static_cast<std::ptrdiff_t>(each));
  }
  return result;
}

ArrayDataset selected(const ArrayDataset& from, std::span<const std::int64_t> indices) {
  const auto size = [](const Shape& shape) { return static_cast<std::size_t>(shape.numel()); };
  ArrayDataset result;
  result.name = from.name;
  result.sample_shape = from.sample_shape;
  result.bytes = selected(from.bytes, size(from.sample_shape), indices);
  result.floats = selected(from.floats, size(from.sample_shape), indices);
  result.labels = selected(from.labels, size(from.label_shape), indices);
  result.label_shape = from.label_shape;
  result.classes = from.classes;
  result.targets = selected(from.targets, size(from.target_shape), indices);
  result.target_shape = from.target_shape;
  result.class_names = from.class_names;
  result.mean = from.mean;
  result.std = from.std;
  return result;
}

}  // namespace

std::vector<std::int32_t> labels_of(const Dataset& dataset) {
  require_size(dataset, "labels_of");
  std::vector<std::int32_t> labels(static_cast<std::size_t>(dataset.size()));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = dataset.label_of(static_cast<std::int64_t>(i));
  return labels;
}

std::vector<float> class_weights(std::span<const std::int32_t> labels, std::int64_t classes) {
  constexpr std::int64_t most_classes = std::int64_t{1} << 30;
  if (labels.empty()) throw Error("class_weights: there are no labels");
  if (classes < 1 || classes > most_classes)
    throw Error(fmt::format("class_weights: {} classes, expected 1 to {}", classes, most_classes));
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes));
  for (const auto label : labels) {
    if (label < 0 || label >= classes)
      throw Error(fmt::format("class_weights: label {} is not one of {} classes", label, classes));
    ++counts[static_cast<std::size_t>(label)];
  }
  std::vector<float> weights;
  for (const auto count : counts)
    weights.push_back(count == 0 ? 0.0F
                                 : static_cast<float>(static_cast<double>(labels.size()) /
                                                      (static_cast<double>(classes) * static_cast<double>(count))));
  return weights;
}

Sampler weighted_sampler(const std::vector<double>& weights, const WeightedOptions& options) {
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (!(weights[i] >= 0 && std::isfinite(weights[i])))
      throw Error(fmt::format("weighted_sampler: weight {} of sample {}, expected a number from 0", weights[i], i));
  const auto possible = std::count_if(weights.begin(), weights.end(), [](double weight) { return weight > 0; });
  const auto samples = options.samples == 0 ? static_cast<std::int64_t>(weights.size()) : options.samples;
  if (possible == 0 || samples < 0)
    throw Error(fmt::format("weighted_sampler: {} samples of {} with a weight above 0", samples, possible));
  if (!options.replacement && samples > possible)
    throw Error(fmt::format("weighted_sampler: {} samples without replacement, and {} have a weight above 0", samples, possible));
  Sampler sampler;
  sampler.size = samples;
  sampler.fingerprint =
      fmt::format("{} of {}, {}", samples, Checksum().add(weights.data(), weights.size() * sizeof(double)).text(),
                  options.replacement ? "again" : "once");
  if (options.replacement) {
    std::vector<double> sums(weights.size());
    std::partial_sum(weights.begin(), weights.end(), sums.begin());
    if (!std::isfinite(sums.back())) throw Error("weighted_sampler: the sum of the weights is too large");
    // Behind the last one with a weight there is nothing to draw.
    while (sums.size() > 1 && weights[sums.size() - 1] == 0) sums.pop_back();
    sampler.order = [sums = std::move(sums), samples](std::uint64_t seed, std::uint64_t epoch) {
      return drawn_again(sums, samples, sampler_random(seed, epoch));
    };
  } else {
    sampler.order = [weights, samples](std::uint64_t seed, std::uint64_t epoch) {
      return drawn_once(weights, samples, sampler_random(seed, epoch));
    };
  }
  return sampler;
}

Sampler balanced_sampler(std::span<const std::int32_t> labels, std::int64_t samples) {
  std::map<std::int32_t, double> counts;
  for (const auto label : labels) ++counts[label];
  std::vector<double> weights;
  for (const auto label : labels) weights.push_back(1 / counts[label]);
  return weighted_sampler(weights, {.samples = samples});
}

Subset::Subset(const Dataset& dataset, std::vector<std::int64_t> indices) : dataset_(&dataset), indices_(std::move(indices)) {
  require_size(dataset, "Subset");
  for (const auto index : indices_)
    if (index < 0 || index >= dataset.size())
      throw Error(fmt::format("Subset: there is no sample {} among {}", index, dataset.size()));
}

std::int64_t Subset::at(std::int64_t index) const {
  if (index < 0 || index >= size()) throw Error(fmt::format("Subset: there is no sample {} among {}", index, size()));
  return indices_[static_cast<std::size_t>(index)];
}

Example Subset::get(std::int64_t index, std::uint64_t seed) const { return dataset_->get(at(index), seed); }
std::int32_t Subset::label_of(std::int64_t index) const { return dataset_->label_of(at(index)); }
std::string Subset::name_of(std::int64_t index) const { return dataset_->name_of(at(index)); }
std::string Subset::fingerprint() const {
  return fmt::format("{} samples, {} of: {}", size(),
                     Checksum().add(indices_.data(), indices_.size() * sizeof(std::int64_t)).text(), dataset_->fingerprint());
}

ConcatDataset::ConcatDataset(std::vector<const Dataset*> parts) : parts_(std::move(parts)) {
  for (const auto* part : parts_) {
    if (part == nullptr) throw Error("ConcatDataset: a dataset is null");
    require_size(*part, "ConcatDataset");
    ends_.push_back(size() + part->size());
  }
}

std::pair<const Dataset*, std::int64_t> ConcatDataset::at(std::int64_t index) const {
  if (index < 0 || index >= size()) throw Error(fmt::format("ConcatDataset: there is no sample {} among {}", index, size()));
  const auto part = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  return {parts_[part], index - (part == 0 ? 0 : ends_[part - 1])};
}

Example ConcatDataset::get(std::int64_t index, std::uint64_t seed) const {
  const auto [part, own] = at(index);
  return part->get(own, seed);
}
std::int32_t ConcatDataset::label_of(std::int64_t index) const {
  const auto [part, own] = at(index);
  return part->label_of(own);
}
std::string ConcatDataset::name_of(std::int64_t index) const {
  const auto [part, own] = at(index);
  return part->name_of(own);
}
std::string ConcatDataset::fingerprint() const {
  std::vector<std::string> all;
  for (const auto* part : parts_) all.push_back(part->fingerprint());
  return fmt::format("{}", fmt::join(all, " and "));
}

std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> stratified_split(std::span<const std::int32_t> labels,
                                                                                 double share, std::uint64_t seed) {
  if (!(share > 0 && share < 1)) throw Error(fmt::format("stratified_split: {}, expected a share between 0 and 1", share));
  std::map<std::int32_t, std::vector<std::size_t>> by_class;
  for (std::size_t i = 0; i < labels.size(); ++i) by_class[labels[i]].push_back(i);
  std::vector<bool> is_second(labels.size(), false);
  for (const auto& [label, members] : by_class) {
    const auto count = static_cast<std::int64_t>(members.size());
    const auto second = count < 2 ? 0 : std::clamp<std::int64_t>(std::llround(share * static_cast<double>(count)), 1, count - 1);
    const auto order = epoch_order(count, true, seed, static_cast<std::uint64_t>(label));
    for (std::int64_t i = 0; i < second; ++i)
      is_second[members[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])]] = true;
  }
  std::vector<std::int64_t> parts[2];
  for (std::size_t i = 0; i < labels.size(); ++i) parts[is_second[i] ? 1 : 0].push_back(static_cast<std::int64_t>(i));
  return {std::move(parts[0]), std::move(parts[1])};
}

std::pair<Subset, Subset> split(const Dataset& dataset, double share, std::uint64_t seed) {
  auto [first, second] = stratified_split(labels_of(dataset), share, seed);
  return {Subset(dataset, std::move(first)), Subset(dataset, std::move(second))};
}

std::pair<ArrayDataset, ArrayDataset> split(const ArrayDataset& dataset, double share, std::uint64_t seed) {
  validate(dataset);
  if (dataset.is_text()) throw Error(fmt::format("split: dataset {} is a text, whose samples follow each other", dataset.name));
  const bool has_classes = !dataset.labels.empty() && dataset.label_shape.rank() == 0;
  const auto one_class = std::vector<std::int32_t>(static_cast<std::size_t>(has_classes ? 0 : dataset.size()));
  const auto [first, second] = stratified_split(has_classes ? dataset.labels : one_class, share, seed);
  return {selected(dataset, first), selected(dataset, second)};
}

}  // namespace clnet::data
