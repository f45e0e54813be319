#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>

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

}  // namespace

Example ArrayDataset::get(std::int64_t index, std::uint64_t) const {
  if (index < 0 || index >= size()) throw Error(fmt::format("dataset {}: there is no sample {} among {}", name, index, size()));
  return Gather(*this).example(index, 0);
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
