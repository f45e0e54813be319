// Image files as samples.
#include "clnet/data/images.h"

#include <fmt/format.h>

#include <utility>

#include "clnet/data/samplers.h"
#include "clnet/error.h"
#include "lib/base/checksum.h"
#include "lib/data/epoch_order.h"
#include "lib/data/image_changes.h"
#include "lib/data/pixels.h"

namespace clnet::data {
namespace {

Array classes_of(const Pixels& mask, std::int64_t classes, const std::string& name) {
  Array result(Shape{mask.height, mask.width}, Dtype::i32, "mask");
  const auto out = result.values<std::int32_t>();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto value = mask.bytes[i];
    if (value >= classes && value != not_counted)
      throw FileError(fmt::format("{}: a pixel has the class {}, expected 0 to {}, or 255 for none", name, value, classes - 1));
    out[i] = value < classes ? value : ignored_class;
  }
  return result;
}

void require_sample(std::int64_t index, std::int64_t size) {
  if (index < 0 || index >= size) throw Error(fmt::format("images: there is no sample {} among {}", index, size));
}

}  // namespace

Images::Images(std::vector<File> files, std::vector<std::string> class_names, ImageOptions options)
    : files_(std::move(files)), class_names_(std::move(class_names)), options_(std::move(options)) {
  validate(options_);
  for (const auto& file : files_)
    if (file.label < 0 || std::cmp_greater_equal(file.label, class_names_.size()))
      throw Error(
          fmt::format("images: {} has the class {}, expected one of {}", file.image.string(), file.label, class_names_.size()));
}

Example Images::get(std::int64_t index, std::uint64_t seed) const {
  require_sample(index, size());
  const auto& file = files_[static_cast<std::size_t>(index)];
  Canvas canvas{.image = with_channels(read_pixels(file.image, Decoding::colours), options_.channels)};
  const bool has_mask = !file.mask.empty();
  if (has_mask) {
    canvas.mask = read_pixels(file.mask, Decoding::indices);
    const auto& mask = canvas.mask;
    if (mask.channels != 1 || mask.height != canvas.image.height || mask.width != canvas.image.width)
      throw FileError(fmt::format("{}: is a mask of {} x {} x {}, and its image has {} x {} pixels", file.mask.string(),
                                  mask.height, mask.width, mask.channels, canvas.image.height, canvas.image.width));
  }
  SampleRandom random(seed, 0, 0);
  change(canvas, options_, random);
  Example example;
  example.push_back(finished(canvas.image, options_, random));
  if (has_mask)
    example.push_back(classes_of(canvas.mask, static_cast<std::int64_t>(class_names_.size()), file.mask.string()));
  else
    example.emplace_back(file.label, "label");
  if (const auto part = random_part_to_erase(options_, random); part.height > 0) {
    erase(example[0], part, 0.0F);
    if (has_mask) erase(example[1], part, ignored_class);
  }
  return example;
}

std::string Images::name_of(std::int64_t index) const {
  require_sample(index, size());
  return files_[static_cast<std::size_t>(index)].image.string();
}

std::int32_t Images::label_of(std::int64_t index) const {
  require_sample(index, size());
  const auto& file = files_[static_cast<std::size_t>(index)];
  if (!file.mask.empty()) throw Error(fmt::format("images: {} has a mask and no single label", file.image.string()));
  return file.label;
}

std::string Images::fingerprint() const {
  Checksum names;
  // Without folders: a set may move.
  for (const auto& file : files_)
    names.add(file.image.filename().string()).add(class_names_[static_cast<std::size_t>(file.label)]);
  return fmt::format("{} images, names {}, {}", size(), names.text(), text_of(options_));
}

std::pair<Images, Images> Images::split(double share, std::uint64_t seed) const {
  if (!(share > 0 && share < 1)) throw Error(fmt::format("images: a split of {}, expected a share between 0 and 1", share));
  std::vector<std::int32_t> labels;
  for (const auto& file : files_) labels.push_back(file.label);
  const auto [first, second] = stratified_split(labels, share, seed);
  const auto part = [&](const std::vector<std::int64_t>& indices) {
    std::vector<File> files;
    for (const auto index : indices) files.push_back(files_[static_cast<std::size_t>(index)]);
    return Images(std::move(files), class_names_, options_);
  };
  return {part(first), part(second)};
}

}  // namespace clnet::data
