#include "tools/clnet_train_onnx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "clnet/error.h"
#include "clnet/models.h"
#include "clnet/ops.h"

namespace clnet::tools {
namespace {

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

/// The only input without a value in the file.
const onnx::ValueInfo& image_input(const onnx::Model& network, const std::string& file) {
  const onnx::ValueInfo* found = nullptr;
  std::size_t needed = 0;
  for (const auto& input : network.inputs())
    if (!input.optional && ++needed == 1) found = &input;
  if (needed != 1) throw Error(fmt::format("{}: has {} inputs, where a classifier of images has one", file, needed));
  return *found;
}

/// Throws Error where the file has operators that are missing, and where there is nothing to train.
onnx::Model trainable(const TrainOptions& o) {
  auto network = loaded(o);
  const auto& missing = network.missing_operators();
  if (!missing.empty()) {
    std::vector<std::string> names;
    for (const auto& each : missing) names.push_back(fmt::format("{} of set {}", each.operation, each.opset));
    throw Unsupported(fmt::format("{}: clnet lacks {} that it needs: {}", o.file, names.size() == 1 ? "an operator" : "operators",
                                  fmt::join(names, ", ")));
  }
  if (network.parameters().empty()) throw Error(fmt::format("{}: has no parameters, so there is nothing to train", o.file));
  return network;
}

}  // namespace

OnnxClassifier::OnnxClassifier(const TrainOptions& o)
    : file_(o.file), network_(trainable(o)), input_(image_input(network_, file_), file_), image_(input_.image) {
  add("network", network_);
  if (input_.takes_bytes() && o.normalize != "none")
    throw Error(fmt::format("{}: {} takes pixels as they are, without --normalize {}", file_, input_.description(), o.normalize));
  if (o.chosen_image_size && ((image_[1] && image_[1] != *o.image_size) || (image_[2] && image_[2] != *o.image_size)))
    throw Error(fmt::format("--image-size: {} takes images of {} x {}", o.model, image_[1], image_[2]));
  try {
    if (!input_.takes_bytes()) said_ = image_notes(network_, file_);
  } catch (const Error&) {
    if (!o.chosen_normalize) throw;
  }
  normalizes_ = !o.chosen_normalize && !(said_.mean.empty() && said_.std.empty());
  train();
}

void OnnxClassifier::expect(const Shape& sample, std::int64_t classes) {
  const bool is_flat = input_.layout == ImageInput::Layout::flat;
  if (is_flat && (input_.numbers == 0 || sample.numel() == input_.numbers)) {
    image_ = sample;
  } else {
    if (is_flat && image_[0] == 0)
      throw Error(fmt::format("{}: takes {} numbers, which no square image has, and the data's images are {}", file_,
                              input_.numbers, to_string(sample)));
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

std::vector<std::string> OnnxClassifier::notes(const TrainOptions& o) const {
  const auto name = std::filesystem::path(file_).filename().string();
  std::vector<std::string> lines;
  if (const auto& last = network_.last_softmax(); !last.empty())
    lines.push_back(fmt::format("{} ends in {}: the loss is cross-entropy of the values before it", name, last));
  if (said_.mean.empty() && said_.std.empty()) return lines;
  const auto values = fmt::format("mean {}, std {}", said_.mean.empty() ? "0" : fmt::format("{}", fmt::join(said_.mean, ",")),
                                  said_.std.empty() ? "1" : fmt::format("{}", fmt::join(said_.std, ",")));
  lines.push_back(normalizes_ ? fmt::format("{} says how images are normalized: {}; --normalize changes that", name, values)
                              : fmt::format("--normalize {} in place of what {} says: {}", o.normalize, name, values));
  return lines;
}

Tensor OnnxClassifier::forward(const Tensor& images) {
  Tensor x = images;
  const auto n = x.size(0), channels = image_[0], height = image_[1], width = image_[2];
  if (x.size(1) == 3 && channels == 1) x = grey_of(x);
  if (x.size(2) != height || x.size(3) != width)
    x = interpolate(x, {.size = {height, width}, .mode = Interpolation::bilinear, .antialias = true});
  if (x.size(1) == 1 && channels == 3) x = expand(x, {n, channels, height, width});
  if (normalizes_) x = normalized(x, said_.mean, said_.std, "its metadata");
  const Tensor y = cast(network_(input_.of(x)), Dtype::f32);
  const bool is_row = y.rank() >= 2 && y.size(0) == n && y.numel() == n * std::max(y.size(1), y.size(y.rank() - 1));
  if (!is_row) throw Error(fmt::format("it is no classifier: it makes {} of {} images", to_string(y.shape()), n));
  return reshape(y, {n, y.numel() / n});
}

void OnnxClassifier::write(const TrainOptions& o, const TrainData& data) {
  auto whole = loaded(o, false);
  whole.load_state_dict(network_.state_dict());
  constexpr std::int64_t one = 1;
  const Tensor example = input_.of(zeros({one, image_[0], image_[1], image_[2]}));
  auto notes = data.notes;
  // Of colours that become grey all have the same.
  if (image_[0] == 1)
    for (auto* values : {&notes.mean, &notes.std}) values->resize(std::min<std::size_t>(values->size(), 1));
  if (normalizes_) {
    notes.mean = said_.mean;
    notes.std = said_.std;
  }
  auto metadata = metadata_of(notes);
  // Without names of the data's classes the file's own hold, but not for other classes.
  if (!data.class_names.empty() || o.replace_head) metadata.push_back(metadata_of_labels(data.class_names));
  onnx::save(whole, {example}, o.export_file, {.metadata = std::move(metadata)});
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
