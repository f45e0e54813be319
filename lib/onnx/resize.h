// Resampling along one axis, as ONNX's Resize defines it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace clnet::onnx {

struct Resampling {
  std::string mode = "nearest";                ///< or "linear", "cubic"
  std::string coordinates = "half_pixel";      ///< coordinate_transformation_mode
  std::string nearest = "round_prefer_floor";  ///< nearest_mode
  double cubic_a = -0.75;                      ///< cubic_coeff_a
  bool exclude_outside = false, antialias = false;
  double begin = 0, end = 1;  ///< of tf_crop_and_resize
};

/// The source of each element of the result, of mode nearest; -1: outside (tf_crop_and_resize).
std::vector<std::int64_t> nearest_sources(const Resampling& how, std::int64_t from, std::int64_t to, double scale);
/// {to, from} weights of linear and cubic modes, row by row; `outside`: rows that lie outside (tf_crop_and_resize).
std::vector<double> resampling_weights(const Resampling& how, std::int64_t from, std::int64_t to, double scale,
                                       std::vector<bool>& outside);

}  // namespace clnet::onnx
