#include "lib/data/augment.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "clnet/error.h"
#include "lib/data/epoch_order.h"
#include "lib/data/gather.h"

namespace clnet::data {
namespace {

/// What cross_entropy does not count.
constexpr std::int32_t ignored = -100;

/// Rows and columns of an image.
struct Extent {
  std::int64_t height = 0, width = 0;
};

Extent extent_of(const Shape& shape) { return {shape[shape.rank() - 2], shape[shape.rank() - 1]}; }

/// Whether values of this shape lie on the pixels of the images.
bool lies_on(const Shape& shape, const Extent& image) {
  return shape.rank() >= 2 && extent_of(shape).height == image.height && extent_of(shape).width == image.width;
}

template <class T>
void flip(std::span<T> planes, std::int64_t width) {
  for (auto row = planes.begin(); row != planes.end(); row += width) std::reverse(row, row + width);
}

/// Element (y, x) of each plane becomes (y + down, x + right) of before; what lies outside is `fill(element)`.
template <class T, class Fill>
void move(std::span<T> planes, const Extent& image, std::int64_t down, std::int64_t right, const Fill& fill) {
  const auto plane = static_cast<std::size_t>(image.height * image.width);
  std::vector<T> before(plane);
  for (std::size_t out = 0; out < planes.size();) {
    std::copy_n(planes.data() + out, plane, before.begin());
    for (std::int64_t y = 0; y < image.height; ++y)
      for (std::int64_t x = 0; x < image.width; ++x, ++out) {
        const auto from_y = y + down, from_x = x + right;
        const bool inside = from_y >= 0 && from_y < image.height && from_x >= 0 && from_x < image.width;
        planes[out] = inside ? before[static_cast<std::size_t>(from_y * image.width + from_x)] : fill(out);
      }
  }
}

}  // namespace

void validate(const Augmentation& augmentation, const ArrayDataset& dataset) {
  const auto invalid = [](const std::string& reason) { throw Error("batches: augmentation: " + reason); };
  if (augmentation.shift < 0) invalid(fmt::format("shift is {}, expected at least 0", augmentation.shift));
  if (!augmentation.flip && augmentation.shift == 0 && !augmentation.change) return;
  if (dataset.is_text()) invalid("a text's samples are moved by shuffling, and not changed otherwise");
  if (augmentation.flip || augmentation.shift > 0) {
    if (dataset.sample_shape.rank() < 2)
      invalid(fmt::format("samples of shape {} are no images", to_string(dataset.sample_shape)));
    const auto image = extent_of(dataset.sample_shape);
    if (augmentation.shift >= std::min(image.height, image.width))
      invalid(fmt::format("a shift of {} moves images of {} x {} out of sight", augmentation.shift, image.height, image.width));
  }
}

Augmenter::Augmenter(const ArrayDataset& dataset, Augmentation augmentation, std::uint64_t seed, std::uint64_t epoch)
    : dataset_(dataset), augmentation_(std::move(augmentation)), seed_(seed), epoch_(epoch) {
  black_.resize(static_cast<std::size_t>(channels_of(dataset)), 0.0F);
  for (std::size_t c = 0; c < dataset.mean.size(); ++c) black_[c] = -dataset.mean[c] / dataset.std[c];
}

Augmenter::operator bool() const { return augmentation_.flip || augmentation_.shift > 0 || augmentation_.change; }

void Augmenter::operator()(std::int64_t index, Sample sample) const {
  SampleRandom random(seed_, epoch_, index);
  sample.random = random.next();
  if (augmentation_.flip || augmentation_.shift > 0) {
    const auto image = extent_of(dataset_.sample_shape);
    const bool labels_too = lies_on(dataset_.label_shape, image), targets_too = lies_on(dataset_.target_shape, image);
    if (augmentation_.flip && random.below(2) == 1) {
      flip(sample.values, image.width);
      if (labels_too) flip(sample.labels, image.width);
      if (targets_too) flip(sample.targets, image.width);
    }
    if (const auto shift = augmentation_.shift; shift > 0) {
      const auto distance = [&] {
        return static_cast<std::int64_t>(random.below(2 * static_cast<std::uint64_t>(shift) + 1)) - shift;
      };
      const auto down = distance(), right = distance();
      // A channel is what the normalisation takes for one: of an image without channels a row.
      const auto channel = sample.values.size() / black_.size();
      move(sample.values, image, down, right, [&](std::size_t element) { return black_[element / channel]; });
      if (labels_too) move(sample.labels, image, down, right, [](std::size_t) { return ignored; });
      if (targets_too) move(sample.targets, image, down, right, [](std::size_t) { return 0.0F; });
    }
  }
  if (augmentation_.change) augmentation_.change(sample);
}

}  // namespace clnet::data
