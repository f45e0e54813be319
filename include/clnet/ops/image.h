// Images of other sizes.
#pragma once

#include <cstdint>
#include <vector>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

/// linear: of {N, C, L}; bilinear and bicubic: of {N, C, H, W}; trilinear: of {N, C, D, H, W}; the others of all three.
/// nearest_exact takes pixels' centres for their places, nearest their beginnings; area is the mean of the pixels that one
/// covers.
enum class Interpolation : std::uint8_t { nearest, nearest_exact, linear, bilinear, bicubic, trilinear, area };
struct InterpolateOptions {
  /// Either the new extents, or what the old ones are multiplied with (and rounded down): one number each, or one for all.
  std::vector<std::int64_t> size = {};
  std::vector<double> scale_factor = {};
  Interpolation mode = Interpolation::nearest;
  bool align_corners =
      false;  ///< of linear, bilinear, bicubic, trilinear: the first and last pixels' centres stay in their places
  /// The scale is that of the extents, after the product was rounded down, instead of the given factor.
  bool recompute_scale_factor = false;
  /// Of bilinear and bicubic: a pixel of a smaller image is made of all pixels that it covers, as in PIL. Bicubic then has PIL's
  /// weights (Keys' kernel with a = -1/2), for larger images, too.
  bool antialias = false;
};
/// x {N, C, ...} of a floating dtype with other extents behind the first two dimensions, as PyTorch's interpolate. Throws
/// ShapeError for other ranks and extents of 0, Error for options that contradict each other.
CLNET_API Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

}  // namespace clnet
