// The operations of clnet/ops/shape.h; lib/ops/catalogue.h says what the columns mean.
#include "lib/ops/catalogue.h"

namespace clnet::ops {

// clang-format off
std::vector<Operation> shape_operations() {
  return {
      {.name = "atleast_1d", .torch = "atleast_1d", .operands = {{"x"}}, .takes = Takes::all},
      {.name = "atleast_2d", .torch = "atleast_2d", .operands = {{"x"}}, .takes = Takes::all},
      {.name = "atleast_3d", .torch = "atleast_3d", .operands = {{"x"}}, .takes = Takes::all},
      {.name = "broadcast_tensors", .torch = "broadcast_tensors", .operands = {{"tensors[]"}}, .takes = Takes::all},
      {.name = "chunk", .torch = "chunk", .operands = {{"x"}}, .takes = Takes::all, .method = "chunk"},
      {.name = "concat", .torch = "cat", .onnx = {"Concat", 13}, .operands = {{"tensors[]"}}, .takes = Takes::all},
      {.name = "diag", .torch = "diag", .operands = {{"x"}}, .takes = Takes::all, .method = "diag"},
      {.name = "diag_embed", .torch = "diag_embed", .operands = {{"x"}}, .takes = Takes::all, .method = "diag_embed"},
      {.name = "diagonal", .torch = "diagonal", .operands = {{"x"}}, .takes = Takes::all, .method = "diagonal"},
      {.name = "dstack", .torch = "dstack", .operands = {{"tensors[]"}}, .takes = Takes::all},
      {.name = "expand", .torch = "Tensor.expand", .onnx = {"Expand", 13}, .operands = {{"x"}}, .takes = Takes::all, .method = "expand"},
      {.name = "flatten", .torch = "flatten", .onnx = {"Flatten", 25}, .operands = {{"x"}}, .takes = Takes::all, .method = "flatten"},
      {.name = "flip", .torch = "flip", .operands = {{"x"}}, .takes = Takes::all, .method = "flip"},
      {.name = "fliplr", .torch = "fliplr", .operands = {{"x"}}, .takes = Takes::all, .method = "fliplr"},
      {.name = "flipud", .torch = "flipud", .operands = {{"x"}}, .takes = Takes::all, .method = "flipud"},
      {.name = "fold", .torch = "fold", .onnx = {"Col2Im", 18}, .operands = {{"columns"}}, .roundings = 6, .solvers = "index_add"},
      {.name = "hstack", .torch = "hstack", .operands = {{"tensors[]"}}, .takes = Takes::all},
      {.name = "meshgrid", .torch = "meshgrid", .operands = {{"tensors[]"}}, .takes = Takes::all},
      {.name = "movedim", .torch = "movedim", .operands = {{"x"}}, .takes = Takes::all, .method = "movedim"},
      {.name = "narrow", .torch = "narrow", .onnx = {"Slice", 13}, .operands = {{"x"}}, .takes = Takes::all, .method = "narrow"},
      {.name = "pad", .torch = "pad", .onnx = {"Pad", 25}, .operands = {{"x"}}, .takes = Takes::all},
      {.name = "permute", .torch = "permute", .onnx = {"Transpose", 25}, .operands = {{"x"}}, .takes = Takes::all, .solvers = "strided_copy", .method = "permute"},
      {.name = "pixel_shuffle", .torch = "pixel_shuffle", .onnx = {"DepthToSpace", 28}, .operands = {{"x"}}, .takes = Takes::all},
      {.name = "pixel_unshuffle", .torch = "pixel_unshuffle", .onnx = {"SpaceToDepth", 28}, .operands = {{"x"}}, .takes = Takes::all},
      {.name = "repeat", .torch = "Tensor.repeat", .onnx = {"Tile", 13}, .operands = {{"x"}}, .takes = Takes::all, .method = "repeat"},
      {.name = "repeat_interleave", .torch = "repeat_interleave", .operands = {{"x"}}, .takes = Takes::all, .method = "repeat_interleave"},
      {.name = "reshape", .torch = "reshape", .onnx = {"Reshape", 25}, .operands = {{"x"}}, .takes = Takes::all, .method = "reshape"},
      {.name = "roll", .torch = "roll", .operands = {{"x"}}, .takes = Takes::all, .method = "roll"},
      {.name = "rot90", .torch = "rot90", .operands = {{"x"}}, .takes = Takes::all, .method = "rot90"},
      {.name = "select", .torch = "select", .operands = {{"x"}}, .takes = Takes::all, .method = "select"},
      {.name = "slice", .torch = "Tensor[a:b:c]", .onnx = {"Slice", 13}, .operands = {{"x"}}, .takes = Takes::all},
      {.name = "slice_update", .torch = "slice_scatter", .operands = {{"x"}, {"value"}}, .takes = Takes::all, .method = "slice_update"},
      {.name = "split", .torch = "split", .onnx = {"Split", 18}, .operands = {{"x"}}, .takes = Takes::all, .method = "split"},
      {.name = "squeeze", .torch = "squeeze", .onnx = {"Squeeze", 25}, .operands = {{"x"}}, .takes = Takes::all, .method = "squeeze"},
      {.name = "stack", .torch = "stack", .operands = {{"tensors[]"}}, .takes = Takes::all},
      {.name = "tensor_split", .torch = "tensor_split", .operands = {{"x"}}, .takes = Takes::all, .method = "tensor_split"},
      {.name = "tile", .torch = "tile", .onnx = {"Tile", 13}, .operands = {{"x"}}, .takes = Takes::all, .method = "tile"},
      {.name = "trace", .torch = "trace", .operands = {{"x"}}, .takes = Takes::all, .gives = Gives::sums, .roundings = 4, .method = "trace"},
      {.name = "transpose", .torch = "transpose", .onnx = {"Transpose", 25}, .operands = {{"x"}}, .takes = Takes::all, .solvers = "strided_copy", .method = "transpose"},
      {.name = "tril", .torch = "tril", .onnx = {"Trilu", 14}, .operands = {{"x"}}, .takes = Takes::all, .method = "tril"},
      {.name = "triu", .torch = "triu", .onnx = {"Trilu", 14}, .operands = {{"x"}}, .takes = Takes::all, .method = "triu"},
      {.name = "unbind", .torch = "unbind", .operands = {{"x"}}, .takes = Takes::all, .method = "unbind"},
      {.name = "unflatten", .torch = "unflatten", .operands = {{"x"}}, .takes = Takes::all, .method = "unflatten"},
      {.name = "unfold", .torch = "unfold", .operands = {{"x"}}},
      {.name = "unsqueeze", .torch = "unsqueeze", .onnx = {"Unsqueeze", 25}, .operands = {{"x"}}, .takes = Takes::all, .method = "unsqueeze"},
      {.name = "vstack", .torch = "vstack", .operands = {{"tensors[]"}}, .takes = Takes::all},
  };
}
// clang-format on

}  // namespace clnet::ops
