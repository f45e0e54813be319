#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "clnet/data.h"
#include "clnet/error.h"
#include "lib/base/checksum.h"
#include "lib/data/gather.h"

namespace clnet::data {

namespace {

ArrayDataset of_samples(std::vector<float> samples, const Shape& sample_shape) {
  ArrayDataset dataset;
  dataset.name = "arrays";
  dataset.sample_shape = sample_shape;
  dataset.floats = std::move(samples);
  return dataset;
}

/// The values as T. Throws Error for one that T does not have.
template <class T>
std::vector<T> values_as(const Array& array) {
  std::vector<T> result;
  const auto take = [&]<class From>(std::type_identity<From>) {
    result.reserve(static_cast<std::size_t>(array.shape.numel()));
    for (const auto value : array.values<From>()) {
      if constexpr (std::is_integral_v<T> && std::is_same_v<From, std::int64_t>)
        if (!std::in_range<T>(value)) throw Error(fmt::format("from_arrays: label {} is out of range", value));
      result.push_back(static_cast<T>(value));
    }
  };
  switch (array.dtype) {
    case Dtype::f32: take(std::type_identity<float>()); break;
    case Dtype::f64: take(std::type_identity<double>()); break;
    case Dtype::i32: take(std::type_identity<std::int32_t>()); break;
    case Dtype::i64: take(std::type_identity<std::int64_t>()); break;
    case Dtype::i8: take(std::type_identity<std::int8_t>()); break;
    case Dtype::u8: take(std::type_identity<std::uint8_t>()); break;
    case Dtype::boolean: take(std::type_identity<bool>()); break;
    case Dtype::f16:
    case Dtype::bf16:
      // They have no type of C++.
      for (std::size_t at = 0; at + 1 < array.bytes.size(); at += 2) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, array.bytes.data() + at, sizeof bits);
        result.push_back(static_cast<T>(array.dtype == Dtype::f16 ? half_to_float(bits) : bfloat16_to_float(bits)));
      }
      break;
    default: throw DtypeError(fmt::format("from_arrays: arrays of {} are not read", to_string(array.dtype)));
  }
  return result;
}

/// The shape of one sample.
Shape without_count(const Array& array, std::string_view what) {
  const auto& extents = array.shape.extents();
  if (extents.empty()) throw ShapeError(fmt::format("from_arrays: the {} are one number, expected a dimension of samples", what));
  return Shape(std::vector<std::int64_t>(extents.begin() + 1, extents.end()));
}

}  // namespace

Example ArrayDataset::get(std::int64_t index, std::uint64_t) const {
  if (index < 0 || index >= size()) throw Error(fmt::format("dataset {}: there is no sample {} among {}", name, index, size()));
  return Gather(*this).example(index, 0);
}

std::int32_t ArrayDataset::label_of(std::int64_t index) const {
  if (index < 0 || index >= size()) throw Error(fmt::format("dataset {}: there is no sample {} among {}", name, index, size()));
  if (labels.empty() || label_shape.numel() != 1) throw Error(fmt::format("dataset {}: samples have no single label", name));
  return labels[static_cast<std::size_t>(index)];
}

std::string ArrayDataset::fingerprint() const {
  const auto content = [](const auto& values) { return std::as_bytes(std::span(values)); };
  Checksum sum;
  for (const auto part : {content(bytes), content(floats), content(labels), content(targets)}) sum.add(part.data(), part.size());
  sum.add(to_string(sample_shape));
  if (label_shape.rank() > 0) sum.add(to_string(label_shape));
  if (!targets.empty()) sum.add(to_string(target_shape));
  if (is_text()) {
    sum.add(content(text).data(), content(text).size());
    for (const auto& character : class_names) sum.add(character);
  }
  return sum.text();
}

ArrayDataset from_arrays(std::vector<float> samples, const Shape& sample_shape, std::vector<std::int32_t> labels,
                         std::int64_t classes) {
  return from_arrays(std::move(samples), sample_shape, std::move(labels), Shape{}, classes);
}

ArrayDataset from_arrays(std::vector<float> samples, const Shape& sample_shape, std::vector<std::int32_t> labels,
                         const Shape& label_shape, std::int64_t classes) {
  auto dataset = of_samples(std::move(samples), sample_shape);
  dataset.labels = std::move(labels);
  dataset.label_shape = label_shape;
  dataset.classes = classes;
  validate(dataset);
  return dataset;
}

ArrayDataset from_arrays(std::vector<float> samples, const Shape& sample_shape, std::vector<float> targets,
                         const Shape& target_shape) {
  auto dataset = of_samples(std::move(samples), sample_shape);
  dataset.targets = std::move(targets);
  dataset.target_shape = target_shape;
  validate(dataset);
  return dataset;
}

ArrayDataset from_arrays(const Array& samples, const Array& answers, std::int64_t classes) {
  const auto sample_shape = without_count(samples, "samples"), answer_shape = without_count(answers, "answers");
  if (samples.shape[0] != answers.shape[0])
    throw ShapeError(fmt::format("from_arrays: {} samples and {} answers", samples.shape[0], answers.shape[0]));
  ArrayDataset dataset = of_samples({}, sample_shape);
  if (samples.dtype == Dtype::u8)
    dataset.bytes = values_as<std::uint8_t>(samples);
  else
    dataset.floats = values_as<float>(samples);
  if (is_floating(answers.dtype)) {
    dataset.targets = values_as<float>(answers);
    dataset.target_shape = answer_shape;
  } else {
    dataset.labels = values_as<std::int32_t>(answers);
    dataset.label_shape = answer_shape;
    const auto largest = std::max_element(dataset.labels.begin(), dataset.labels.end());
    dataset.classes = classes > 0 || largest == dataset.labels.end() ? classes : std::int64_t{*largest} + 1;
  }
  validate(dataset);
  return dataset;
}

void compute_normalization(const ArrayDataset& dataset, std::vector<float>& mean, std::vector<float>& std) {
  validate(dataset);
  if (dataset.size() == 0) throw Error("compute_normalization: the dataset is empty");
  const auto channels = static_cast<std::size_t>(channels_of(dataset)), samples = static_cast<std::size_t>(dataset.size());
  const auto plane = static_cast<std::size_t>(dataset.sample_shape.numel()) / channels;
  const auto count = static_cast<double>(samples) * static_cast<double>(plane);
  // Results go to vectors of their own: `mean` and `std` may be the dataset's.
  std::vector<float> means(channels), deviations(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    double sum = 0, squares = 0, average = 0;
    if (!dataset.bytes.empty()) {
      std::array<std::uint64_t, 256> counts{};
      for (std::size_t n = 0; n < samples; ++n) {
        const auto* in = dataset.bytes.data() + (n * channels + c) * plane;
        for (std::size_t i = 0; i < plane; ++i) ++counts[in[i]];
      }
      for (std::size_t v = 0; v < counts.size(); ++v) sum += static_cast<double>(counts[v]) * static_cast<double>(v) / 255.0;
      average = sum / count;
      for (std::size_t v = 0; v < counts.size(); ++v) {
        const double distance = static_cast<double>(v) / 255.0 - average;
        squares += static_cast<double>(counts[v]) * distance * distance;
      }
    } else {
      const auto each = [&](auto&& use) {
        for (std::size_t n = 0; n < samples; ++n) {
          const float* in = dataset.floats.data() + (n * channels + c) * plane;
          for (std::size_t i = 0; i < plane; ++i) use(static_cast<double>(in[i]));
        }
      };
      each([&](double x) { sum += x; });
      average = sum / count;
      each([&](double x) { squares += (x - average) * (x - average); });
    }
    means[c] = static_cast<float>(average);
    const auto deviation = static_cast<float>(std::sqrt(squares / count));
    deviations[c] = deviation > 0 ? deviation : 1.0f;
  }
  mean = std::move(means);
  std = std::move(deviations);
}

}  // namespace clnet::data
