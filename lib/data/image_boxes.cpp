// Image files with boxes, which move with their image.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "clnet/data/images.h"
#include "clnet/error.h"
#include "lib/base/checksum.h"
#include "lib/data/image_changes.h"

namespace clnet::data {
namespace {

/// Points on each side of a box that an elastic change bends.
constexpr int bent_points = 8;

std::vector<Point> outline_of(const ImageBoxes::Box& box, bool is_bent) {
  const double left = box.x1, top = box.y1, width = box.x2 - box.x1, height = box.y2 - box.y1;
  std::vector<Point> points;
  const int steps = is_bent ? bent_points : 1;
  for (int i = 0; i < steps; ++i) {
    const double share = static_cast<double>(i) / steps, x = left + share * width, y = top + share * height;
    points.push_back({x, top});
    points.push_back({left + width, y});
    points.push_back({left + width - share * width, top + height});
    points.push_back({left, top + height - share * height});
  }
  return points;
}

struct Bounds {
  double left = std::numeric_limits<double>::max(), top = left, right = -left, bottom = -left;
  double area() const { return std::max(0.0, right - left) * std::max(0.0, bottom - top); }
};

Bounds bounds_of(const std::vector<Point>& outline) {
  Bounds bounds;
  for (const auto& point : outline) {
    bounds.left = std::min(bounds.left, point.x);
    bounds.right = std::max(bounds.right, point.x);
    bounds.top = std::min(bounds.top, point.y);
    bounds.bottom = std::max(bounds.bottom, point.y);
  }
  return bounds;
}

Bounds clipped(const Bounds& bounds, double height, double width) {
  Bounds inside;
  inside.left = std::clamp(bounds.left, 0.0, width);
  inside.right = std::clamp(bounds.right, 0.0, width);
  inside.top = std::clamp(bounds.top, 0.0, height);
  inside.bottom = std::clamp(bounds.bottom, 0.0, height);
  return inside;
}

}  // namespace

ImageBoxes::ImageBoxes(std::vector<File> files, std::vector<std::string> class_names, ImageOptions options)
    : files_(std::move(files)), class_names_(std::move(class_names)), options_(std::move(options)) {
  validate(options_);
  for (const auto& file : files_)
    for (const auto& box : file.boxes) {
      if (box.label < 0 || std::cmp_greater_equal(box.label, class_names_.size()))
        throw Error(
            fmt::format("images: {} has the class {}, expected one of {}", file.image.string(), box.label, class_names_.size()));
      if (!(box.x1 < box.x2 && box.y1 < box.y2 && box.x1 >= -most_coordinate && box.y1 >= -most_coordinate &&
            box.x2 <= most_coordinate && box.y2 <= most_coordinate))
        throw Error(fmt::format("images: {} has a box from {}, {} to {}, {}, expected an area of at most {} pixels a side",
                                file.image.string(), box.x1, box.y1, box.x2, box.y2, most_coordinate));
    }
}

Example ImageBoxes::get(std::int64_t index, std::uint64_t seed) const {
  if (index < 0 || index >= size()) throw Error(fmt::format("images: there is no sample {} among {}", index, size()));
  const auto& file = files_[static_cast<std::size_t>(index)];
  Canvas canvas{.image = with_channels(read_pixels(file.image, Decoding::colours), options_.channels)};
  for (const auto& box : file.boxes) canvas.outlines.push_back(outline_of(box, options_.elastic > 0));
  SampleRandom random(seed, 0, 0);
  change(canvas, options_, random);
  std::vector<float> corners;
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < canvas.outlines.size(); ++i) {
    const auto whole = bounds_of(canvas.outlines[i]);
    const auto inside = clipped(whole, static_cast<double>(options_.height), static_cast<double>(options_.width));
    if (!(inside.area() > 0) || inside.area() < options_.least_box * whole.area()) continue;
    for (const double corner : {inside.left, inside.top, inside.right, inside.bottom})
      corners.push_back(static_cast<float>(corner));
    labels.push_back(file.boxes[i].label);
  }
  const auto count = static_cast<std::int64_t>(labels.size());
  Example example;
  example.push_back(finished(canvas.image, options_, random));
  if (const auto part = random_part_to_erase(options_, random); part.height > 0) erase(example[0], part, 0.0F);
  example.emplace_back(corners, Shape{count, 4}, "boxes");
  example.emplace_back(labels, Shape{count}, "labels");
  return example;
}

std::string ImageBoxes::name_of(std::int64_t index) const {
  if (index < 0 || index >= size()) throw Error(fmt::format("boxes: there is no sample {} among {}", index, size()));
  return files_[static_cast<std::size_t>(index)].image.string();
}

std::string ImageBoxes::fingerprint() const {
  Checksum content;
  for (const auto& file : files_) {
    content.add(file.image.filename().string());
    for (const auto& box : file.boxes)
      content.add(
          fmt::format("{} {} {} {} {}", box.x1, box.y1, box.x2, box.y2, class_names_[static_cast<std::size_t>(box.label)]));
  }
  return fmt::format("{} images with boxes, content {}, {}", size(), content.text(), text_of(options_));
}

Collate box_collate() {
  return [pad = pad_collate({.values = {0, 0, static_cast<double>(ignored_class)}, .arrays = {1, 2}})](
             std::vector<Example> samples) {
    // A batch has room for one box at least: tensors are not empty.
    for (auto& sample : samples)
      if (sample.size() == 3 && sample[2].shape.numel() == 0) {
        sample[1] = Array(std::vector<float>(4), Shape{1, 4}, "boxes");
        sample[2] = Array(std::vector<std::int32_t>{ignored_class}, Shape{1}, "labels");
      }
    return pad(std::move(samples));
  };
}

}  // namespace clnet::data
