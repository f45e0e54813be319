// The models of clnet-train that come from ONNX files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clnet/nn.h"
#include "clnet/onnx.h"
#include "tools/clnet_train_data.h"
#include "tools/clnet_train_options.h"
#include "tools/image_notes.h"
#include "tools/onnx_image.h"

namespace clnet::tools {

/// A classifier from a file: images {n, channels, height, width} from 0 to 1 become scores {n, classes}.
class OnnxClassifier : public nn::Module {
 public:
  /// Images are normalized as the file says, unless the options choose. Throws Error where the file has operators that are
  /// missing, or where its input cannot be images.
  explicit OnnxClassifier(const TrainOptions& options);

  /// The images that it takes, {channels, height, width}; an extent of 0 is open.
  const Shape& image() const { return image_; }
  /// Images of the data have this shape: forward() resizes them. Throws Error where the network cannot take them, or gives
  /// another number of scores than `classes`.
  void expect(const Shape& sample, std::int64_t classes);
  /// What the log says of its loss and of its images.
  std::vector<std::string> notes(const TrainOptions& options) const;

  /// Writes the network with its present weights and the file's own last operators.
  void write(const TrainOptions& options, const TrainData& data);

  Tensor forward(const Tensor& x) override;
  onnx::Model& network() { return network_; }

 private:
  std::string file_;
  onnx::Model network_;
  ImageInput input_;
  Shape image_;              ///< {channels, height, width} that it gets
  ImageNotes said_;          ///< by the file
  bool normalizes_ = false;  ///< images, as the file says
};

/// Freezes what --freeze names, but no fresh head. Throws Error where a pattern matches no parameter, and where nothing is left
/// to train.
void freeze(const TrainOptions& options, nn::Module& model, const std::vector<std::string>& head);

/// Writes a model of the library.
void export_model(const TrainOptions& options, nn::Module& model, const TrainData& data);

}  // namespace clnet::tools
