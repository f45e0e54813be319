// Images as the input of an ONNX network: what clnet-train and clnet-run make of pixels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/onnx.h"

namespace clnet::tools {

class ImageInput {
 public:
  enum class Layout : std::uint8_t { planes, pixels, grey, flat };

  /// As the file declares the input. Throws Error, which begins with `file`, where it cannot be a batch of images.
  ImageInput(const onnx::ValueInfo& input, const std::string& file);

  Layout layout = Layout::planes;
  Shape image{0, 0, 0};      ///< {channels, height, width}; an extent of 0 is open
  std::int64_t numbers = 0;  ///< of an image, where the input has no further extents; 0: open
  std::string type;          ///< of the elements

  /// Takes four extents as this layout has them. Throws Error for other numbers of channels than 1 and 3.
  void choose(Layout chosen);
  /// "input x of float [n, 3, 224, 224]"
  const std::string& description() const { return description_; }
  bool takes_bytes() const { return type == "uint8"; }
  /// Images {n, channels, height, width} of pixels from 0 to 1, or normalized ones, in the input's layout and type.
  Tensor of(const Tensor& images) const;

 private:
  [[noreturn]] void fail(std::string_view reason) const;

  std::string file_, description_;
  std::vector<std::int64_t> extents_;  ///< an open one is 0
};

/// (x - mean) / std of images {n, channels, height, width}; each list has a number per channel, one for all, or none. Throws
/// Error, which begins with `what`, for another count.
Tensor normalized(const Tensor& images, const std::vector<float>& mean, const std::vector<float>& std, const std::string& what);

}  // namespace clnet::tools
