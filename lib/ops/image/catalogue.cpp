// The operations of clnet/ops/image.h; lib/ops/catalogue.h says what the columns mean.
#include "lib/ops/catalogue.h"

namespace clnet::ops {

// clang-format off
std::vector<Operation> image_operations() {
  return {
      {.name = "interpolate", .torch = "interpolate", .onnx = {"Resize", 19}, .operands = {{"x"}}, .roundings = 8, .solvers = "resample"},
  };
}
// clang-format on

}  // namespace clnet::ops
