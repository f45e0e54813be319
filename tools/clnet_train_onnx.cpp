#include "tools/clnet_train_onnx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "clnet/error.h"
#include "clnet/models.h"
#include "clnet/ops.h"
#include "tools/onnx_extent.h"

namespace clnet::tools {
namespace {

constexpr std::int64_t largest_side = 65536;

/// With the softmax of the file, or without for the loss.
onnx::Model loaded(const TrainOptions& o, bool logits = true) {
  onnx::LoadOptions options{
      .freeze_statistics = o.freeze_statistics, .replace_head = o.replace_head, .logits = logits, .free_batch = true};
  auto model = onnx::load(o.file, options);
  if (model.parameters().size() > model.head().size()) return model;
  // Some programs write weights as constants.
  manual_seed(o.seed);
  options.train_constants = true;
  return onnx::load(o.file, options);
}

/// Luma of ITU-R BT.601, as PIL makes a picture grey.
Tensor grey_of(const Tensor& x) {
  const auto channel = [&](std::int64_t c) { return slice(x, 1, c, c + 1); };
  return 0.299 * channel(0) + 0.587 * channel(1) + 0.114 * channel(2);
}

}  // namespace

OnnxClassifier::OnnxClassifier(const TrainOptions& o) : file_(o.file), network_(loaded(o)) {
  const auto& missing = network_.missing_operators();
  if (!missing.empty()) {
    std::vector<std::string> names;
    for (const auto& each : missing) names.push_back(fmt::format("{} of set {}", each.operation, each.opset));
    throw Unsupported(fmt::format("{}: clnet lacks {} that it needs: {}", file_, names.size() == 1 ? "an operator" : "operators",
                                  fmt::join(names, ", ")));
  }
  if (network_.parameters().empty()) throw Error(fmt::format("{}: has no parameters, so there is nothing to train", file_));
  add("network", network_);
  read_input(o);
  train();
}

void OnnxClassifier::read_input(const TrainOptions& o) {
  std::size_t needed = 0;
  for (std::size_t i = 0; i < network_.inputs().size(); ++i)
    if (!network_.inputs()[i].optional && ++needed == 1) input_ = i;
  if (needed != 1) throw Error(fmt::format("{}: has {} inputs, where a classifier of images has one", file_, needed));
  const auto& input = network_.inputs()[input_];
  const auto described = [&] {
    return fmt::format("input {} of {} [{}]", input.name, input.type, fmt::join(input.extents, ", "));
  };
  if (input.is_sequence || (input.type != "float" && input.type != "float16" && input.type != "double" && input.type != "uint8"))
    throw Error(fmt::format("{}: {} is no image", file_, described()));
  if (input.type == "uint8" && o.normalize != "none")
    throw Error(fmt::format("{}: {} takes pixels as they are, without --normalize {}", file_, described(), o.normalize));
  if (!input.is_known_rank) return;
  std::vector<std::int64_t> extents;
  for (const auto& extent : input.extents) extents.push_back(number_of(extent));
  for (const auto extent : extents)
    if (extents.size() > 2 && extent > largest_side) throw Error(fmt::format("{}: {} is too large", file_, described()));
  const auto is_channels = [&](std::size_t d) { return extents[d] == 1 || extents[d] == 3; };
  switch (extents.size()) {
    case 4:
      if (!is_channels(1) && is_channels(3)) {
        layout_ = Layout::pixels;
        image_ = {extents[3], extents[1], extents[2]};
      } else if (is_channels(1) || extents[1] == 0) {
        image_ = {extents[1], extents[2], extents[3]};
      } else {
        throw Error(fmt::format("{}: {} has neither 1 nor 3 channels", file_, described()));
      }
      break;
    case 3:
      layout_ = Layout::grey;
      image_ = {1, extents[1], extents[2]};
      break;
    case 2:
      layout_ = Layout::flat;
      numbers_ = extents[1];
      // Of image files, which have any size; other data may have this many numbers in another shape.
      for (const std::int64_t channels : {3, 1}) {
        const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(numbers_ / channels))));
        if (numbers_ > 0 && side <= largest_side && channels * side * side == numbers_) image_ = {channels, side, side};
      }
      break;
    default: throw Error(fmt::format("{}: {} is no batch of images", file_, described()));
  }
  if (o.chosen_image_size && ((image_[1] && image_[1] != *o.image_size) || (image_[2] && image_[2] != *o.image_size)))
    throw Error(fmt::format("--image-size: {} takes images of {} x {}", o.model, image_[1], image_[2]));
}

void OnnxClassifier::expect(const Shape& sample, std::int64_t classes) {
  if (layout_ == Layout::flat && (numbers_ == 0 || sample.numel() == numbers_)) {
    image_ = sample;
  } else {
    if (layout_ == Layout::flat && image_[0] == 0)
      throw Error(fmt::format("{}: takes {} numbers, which no square image has, and the data's images are {}", file_, numbers_,
                              to_string(sample)));
    image_ = {image_[0] ? image_[0] : sample[0], image_[1] ? image_[1] : sample[1], image_[2] ? image_[2] : sample[2]};
  }
  if (sample[0] != 1 && sample[0] != 3)
    throw Error(fmt::format("{}: the data's images have {} channels, not 1 or 3", file_, sample[0]));
  // Only the graph is built.
  Tensor scores;
  try {
    constexpr std::int64_t some = 2;
    scores = forward(zeros({some, sample[0], sample[1], sample[2]}));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: cannot take batches of images {}: {}", file_, to_string(image_), error.what()));
  }
  if (scores.size(1) != classes)
    throw Error(fmt::format("{}: has {} outputs, and the data {} classes; --replace-head {} gives it a fresh last layer", file_,
                            scores.size(1), classes, classes));
}

std::string OnnxClassifier::note() const {
  const auto& last = network_.last_softmax();
  if (last.empty()) return {};
  return fmt::format("{} ends in {}: the loss is cross-entropy of the values before it",
                     std::filesystem::path(file_).filename().string(), last);
}

Tensor OnnxClassifier::forward(const Tensor& images) {
  Tensor x = images;
  const auto n = x.size(0), channels = image_[0], height = image_[1], width = image_[2];
  if (x.size(1) == 3 && channels == 1) x = grey_of(x);
  if (x.size(2) != height || x.size(3) != width)
    x = interpolate(x, {.size = {height, width}, .mode = Interpolation::bilinear, .antialias = true});
  if (x.size(1) == 1 && channels == 3) x = expand(x, {n, channels, height, width});
  if (layout_ == Layout::pixels) x = permute(x, {0, 2, 3, 1});
  if (layout_ == Layout::grey) x = reshape(x, {n, height, width});
  if (layout_ == Layout::flat) x = reshape(x, {n, channels * height * width});
  return scores_of(x);
}

Tensor OnnxClassifier::as_input(const Tensor& x) const {
  const auto& type = network_.inputs()[input_].type;
  if (type == "float16") return cast(x, Dtype::f16);
  if (type == "double") return cast(x, Dtype::f64);
  if (type == "uint8") return cast(round(x * 255.0), Dtype::u8);
  return x;
}

Tensor OnnxClassifier::scores_of(const Tensor& x) {
  const Tensor y = cast(network_(as_input(x)), Dtype::f32);
  const auto n = x.size(0);
  const bool is_row = y.rank() >= 2 && y.size(0) == n && y.numel() == n * std::max(y.size(1), y.size(y.rank() - 1));
  if (!is_row) throw Error(fmt::format("it is no classifier: it makes {} of {} images", to_string(y.shape()), n));
  return reshape(y, {n, y.numel() / n});
}

void OnnxClassifier::write(const TrainOptions& o, const TrainData& data) {
  auto whole = loaded(o, false);
  whole.load_state_dict(network_.state_dict());
  constexpr std::int64_t one = 1;
  Tensor example;
  switch (layout_) {
    case Layout::planes: example = zeros({one, image_[0], image_[1], image_[2]}); break;
    case Layout::pixels: example = zeros({one, image_[1], image_[2], image_[0]}); break;
    case Layout::grey: example = zeros({one, image_[1], image_[2]}); break;
    case Layout::flat: example = zeros({one, image_.numel()}); break;
  }
  auto notes = data.notes;
  // Grey of colours that were normalized apart is no grey image by one mean and deviation.
  if (image_[0] == 1 && data.sample_shape[0] == 3) notes.mean = notes.std = {};
  auto metadata = metadata_of(notes);
  // Without names of the data's classes the file's own hold, but not for other classes.
  if (!data.class_names.empty() || o.replace_head) metadata.push_back(metadata_of_labels(data.class_names));
  onnx::save(whole, {as_input(example)}, o.export_file, {.metadata = std::move(metadata)});
}

void export_model(const TrainOptions& o, nn::Module& model, const TrainData& data) {
  auto extents = std::vector<std::int64_t>(data.sample_shape.begin(), data.sample_shape.end());
  extents.insert(extents.begin(), 1);
  auto metadata = metadata_of(data.notes);
  metadata.push_back(metadata_of_labels(data.class_names));
  const bool writes = dynamic_cast<models::LanguageModel*>(&model) != nullptr;
  onnx::save(model, {zeros(Shape(extents), writes ? Dtype::i32 : Dtype::f32)}, o.export_file, {.metadata = std::move(metadata)});
}

void freeze(const TrainOptions& o, nn::Module& model, const std::vector<std::string>& head) {
  for (const auto& pattern : o.freeze) {
    try {
      model.freeze_matching(pattern);
    } catch (const Error& error) {
      throw Error(fmt::format("--freeze: {}", error.what()));
    }
  }
  for (const auto& name : head) model.parameter(name).freeze(false);
  const auto parameters = model.parameters();
  if (!parameters.empty() &&
      std::all_of(parameters.begin(), parameters.end(), [](const auto& each) { return each.second.frozen(); }))
    throw Error("--freeze: nothing is left to train");
}

}  // namespace clnet::tools
