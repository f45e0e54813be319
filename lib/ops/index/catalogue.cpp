// The operations of clnet/ops/index.h; lib/ops/catalogue.h says what the columns mean.
#include "lib/ops/catalogue.h"

namespace clnet::ops {

// clang-format off
std::vector<Operation> index_operations() {
  return {
      {.name = "argsort", .torch = "argsort", .operands = {{"x"}}, .takes = Takes::all, .gives = Gives::index, .gradient = Gradient::none, .method = "argsort"},
      {.name = "argwhere", .torch = "argwhere", .onnx = {"NonZero", 13}, .operands = {{"x"}}, .takes = Takes::all, .gives = Gives::index, .gradient = Gradient::none, .method = "argwhere"},
      {.name = "bincount", .torch = "bincount", .operands = {{"x", Holds::indices}, optional("weights")}, .takes = Takes::numbers, .gives = Gives::f32, .roundings = 5, .solvers = "index_add"},
      {.name = "bucketize", .torch = "bucketize", .operands = {{"x"}, {"boundaries"}}, .takes = Takes::all, .gives = Gives::index, .gradient = Gradient::none},
      {.name = "embedding", .torch = "embedding", .onnx = {"Gather", 13}, .operands = {{"indices", Holds::indices}, {"weight"}}, .takes = Takes::all},
      {.name = "gather", .torch = "gather", .onnx = {"GatherElements", 13}, .operands = {{"x"}, {"indices", Holds::indices}}, .takes = Takes::all, .method = "gather"},
      {.name = "gather_nd", .onnx = {"GatherND", 13}, .operands = {{"x"}, {"indices", Holds::indices}}, .takes = Takes::all},
      {.name = "histc", .torch = "histc", .operands = {{"x"}}, .gradient = Gradient::none, .solvers = "index_add", .method = "histc"},
      {.name = "index_add", .torch = "index_add", .operands = {{"x"}, {"indices", Holds::indices}, {"source"}}, .takes = Takes::numbers, .roundings = 5, .method = "index_add"},
      {.name = "index_copy", .torch = "index_copy", .operands = {{"x"}, {"indices", Holds::indices}, {"source"}}, .takes = Takes::all, .solvers = "last_picks", .method = "index_copy"},
      {.name = "index_fill", .torch = "index_fill", .operands = {{"x"}, {"indices", Holds::indices}}, .takes = Takes::all, .solvers = "last_picks", .method = "index_fill"},
      {.name = "index_select", .torch = "index_select", .onnx = {"Gather", 13}, .operands = {{"x"}, {"indices", Holds::indices}}, .takes = Takes::all, .method = "index_select"},
      {.name = "isin", .torch = "isin", .operands = {{"x"}, {"values"}}, .takes = Takes::all, .gives = Gives::boolean, .gradient = Gradient::none},
      {.name = "kthvalue", .torch = "kthvalue", .operands = {{"x"}}, .takes = Takes::all, .solvers = "argsort", .method = "kthvalue"},
      {.name = "masked_select", .torch = "masked_select", .operands = {{"x"}, {"mask", Holds::truth}}, .takes = Takes::all, .method = "masked_select"},
      {.name = "median", .torch = "median", .operands = {{"x"}}, .takes = Takes::all, .solvers = "argsort", .method = "median"},
      {.name = "mode", .torch = "mode", .operands = {{"x"}}, .takes = Takes::all, .solvers = "argsort", .method = "mode"},
      {.name = "msort", .torch = "msort", .operands = {{"x"}}, .takes = Takes::all, .solvers = "argsort", .method = "msort"},
      {.name = "nanmedian", .torch = "nanmedian", .operands = {{"x"}}, .takes = Takes::all, .solvers = "argsort", .method = "nanmedian"},
      {.name = "nanquantile", .torch = "nanquantile", .operands = {{"x"}}, .roundings = 4, .solvers = "argsort"},
      {.name = "nonzero", .torch = "nonzero", .onnx = {"NonZero", 13}, .operands = {{"x"}}, .takes = Takes::all, .gives = Gives::index, .gradient = Gradient::none, .method = "nonzero"},
      {.name = "one_hot", .torch = "one_hot", .onnx = {"OneHot", 28}, .operands = {{"indices", Holds::indices}}, .takes = Takes::all, .gradient = Gradient::none},
      {.name = "quantile", .torch = "quantile", .operands = {{"x"}}, .roundings = 4, .solvers = "argsort"},
      {.name = "scatter", .torch = "scatter", .onnx = {"ScatterElements", 18}, .operands = {{"x"}, {"indices", Holds::indices}, {"source"}}, .takes = Takes::all, .solvers = "last_picks", .method = "scatter"},
      {.name = "scatter_add", .torch = "scatter_add", .onnx = {"ScatterElements(add)", 18}, .operands = {{"x"}, {"indices", Holds::indices}, {"source"}}, .takes = Takes::numbers, .roundings = 5, .method = "scatter_add"},
      {.name = "scatter_nd", .torch = "index_put", .onnx = {"ScatterND", 18}, .operands = {{"x"}, {"indices", Holds::indices}, {"source"}}, .takes = Takes::all, .solvers = "last_picks"},
      {.name = "scatter_reduce", .torch = "scatter_reduce", .onnx = {"ScatterElements(reduction)", 18}, .operands = {{"x"}, {"indices", Holds::indices}, {"source"}}, .takes = Takes::numbers, .method = "scatter_reduce"},
      {.name = "searchsorted", .torch = "searchsorted", .operands = {{"sorted"}, {"values"}}, .takes = Takes::all, .gives = Gives::index, .gradient = Gradient::none},
      {.name = "sort", .torch = "sort", .operands = {{"x"}}, .takes = Takes::all, .solvers = "argsort", .method = "sort"},
      {.name = "take", .torch = "take", .operands = {{"x"}, {"indices", Holds::indices}}, .takes = Takes::all, .method = "take"},
      {.name = "take_along_dim", .torch = "take_along_dim", .operands = {{"x"}, {"indices", Holds::indices}}, .takes = Takes::all, .method = "take_along_dim"},
      {.name = "topk", .torch = "topk", .onnx = {"TopK", 24}, .operands = {{"x"}}, .takes = Takes::all, .method = "topk"},
      {.name = "unique", .torch = "unique", .onnx = {"Unique", 11}, .operands = {{"x"}}, .takes = Takes::all, .gradient = Gradient::none, .method = "unique"},
      {.name = "unique_consecutive", .torch = "unique_consecutive", .operands = {{"x"}}, .takes = Takes::all, .gradient = Gradient::none, .method = "unique_consecutive"},
  };
}
// clang-format on

}  // namespace clnet::ops
