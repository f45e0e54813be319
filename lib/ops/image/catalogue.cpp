// The operations of clnet/ops/image.h; lib/ops/catalogue.h says what the columns mean.
#include "lib/ops/catalogue.h"

namespace clnet::ops {

// clang-format off
std::vector<Operation> image_operations() {
  return {
      {.name = "affine_grid", .torch = "affine_grid", .onnx = {"AffineGrid", 20}, .operands = {{"theta"}}, .roundings = 8},
      {.name = "grid_sample", .torch = "grid_sample", .onnx = {"GridSample", 22}, .operands = {{"x"}, {"grid", Holds::value, {-1.2, 1.2}}}, .roundings = 60},
      {.name = "interpolate", .torch = "interpolate", .onnx = {"Resize", 19}, .operands = {{"x"}}, .roundings = 8, .solvers = "resample"},
      {.name = "nms", .torch = "torchvision.ops.nms", .onnx = {"NonMaxSuppression", 11}, .operands = {{"boxes"}, {"scores"}}, .gives = Gives::index, .gradient = Gradient::none},
      {.name = "roi_align", .torch = "torchvision.ops.roi_align", .onnx = {"RoiAlign", 22}, .operands = {{"x"}, {"boxes", Holds::value, {0, 5}}}, .roundings = 60},
  };
}
// clang-format on

}  // namespace clnet::ops
