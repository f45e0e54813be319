// Resizing and sampling of images.
#pragma once

#include <cstdint>
#include <vector>

#include "clnet/export.h"
#include "clnet/ops/options.h"
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

/// Elements outside of the image: 0, those at the border, or the image mirrored at it.
enum class GridPadding : std::uint8_t { zeros, border, reflection };
struct GridSampleOptions {
  Interpolation mode = Interpolation::bilinear;  ///< or nearest (halves to even), or bicubic
  GridPadding padding = GridPadding::zeros;
  /// -1 and 1 are the centres of the first and the last pixel, instead of their outer edges.
  bool align_corners = false;
};
/// Samples x {N, C, H, W} at grid {N, h, w, 2} of places (column, row) from -1 to 1: {N, C, h, w}, as torch's grid_sample.
/// Gradients go to both, and are the same at every run. Floating dtypes, both one. Throws ShapeError for shapes that do not fit
/// and an image without pixels, Error for another mode.
CLNET_API Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options = {});
/// The grid for grid_sample() of theta {N, 2, 3}: {N, H, W, 2} for size {N, C, H, W}. Of theta {N, 3, 4}: {N, D, H, W, 3} for
/// size {N, C, D, H, W}. Floating dtypes. Throws ShapeError for shapes that do not fit.
CLNET_API Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners = false);

struct RoiAlignOptions {
  double spatial_scale = 1;  ///< pixels of x per unit of the boxes
  /// Samples along each side of a place. 0 or below: as many as it has pixels, rounded up; then the boxes are evaluated, which is
  /// an Error inside compile().
  std::int64_t sampling_ratio = 0;
  bool aligned = false;  ///< shifts boxes by half a pixel, and takes those smaller than a pixel as they are
};
/// The mean of bilinear samples in each of height x width parts of boxes {K, 5}: {K, C, height, width}, as torchvision's
/// roi_align. A box is the image's number in x {N, C, H, W}, then x1, y1, x2, y2; a number that is no image gives 0. The gradient
/// goes to x. Floating dtypes, both one. Throws ShapeError for shapes that do not fit.
CLNET_API Tensor roi_align(const Tensor& x, const Tensor& boxes, Pair output_size, const RoiAlignOptions& options = {});
/// The i64 indices of boxes that remain, in the order of falling scores: a box goes that overlaps a better one by more than
/// iou_threshold (intersection over union). `boxes` are {n, 4} of x1, y1, x2, y2, `scores` {n}; the first of equal scores is the
/// better. Evaluates both at once, on the host; an Error inside compile(). Floating dtypes. Throws ShapeError for other shapes,
/// Error for a threshold that is NaN.
CLNET_API Tensor nms(const Tensor& boxes, const Tensor& scores, double iou_threshold);

}  // namespace clnet
