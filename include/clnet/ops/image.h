// Resizing of images.
#pragma once

#include <cstdint>
#include <vector>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

/// linear takes {N, C, L}. bilinear and bicubic take {N, C, H, W}, trilinear {N, C, D, H, W}. The others take all three.
/// nearest_exact maps pixels' centres, nearest their first corners; area is the mean of the covered pixels.
enum class Interpolation : std::uint8_t { nearest, nearest_exact, linear, bilinear, bicubic, trilinear, area };
struct InterpolateOptions {
  /// Either the new extents, or factors of the old ones (rounded down): one number per dimension, or one for all.
  std::vector<std::int64_t> size = {};
  std::vector<double> scale_factor = {};
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false;  ///< linear to trilinear, bicubic: keeps the centres of the first and last pixels in place
  /// Computes the scale from the rounded extents, instead of the given factor.
  bool recompute_scale_factor = false;
  /// bilinear and bicubic: a pixel of a smaller image averages all pixels that it covers, as in PIL. Bicubic then has PIL's
  /// weights (Keys' kernel with a = -1/2), for larger images, too.
  bool antialias = false;
};
/// Resizes x {N, C, ...} of a floating dtype to {N, C, new extents}, as torch's interpolate. Throws ShapeError for other ranks
/// and extents of 0, Error for options that contradict each other.
CLNET_API Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

}  // namespace clnet
