// The operations of clnet/ops/index.h; lib/ops/catalogue.h says what the columns mean.
#include "lib/ops/catalogue.h"

namespace clnet::ops {

// clang-format off
std::vector<Operation> index_operations() {
  return {
      {.name = "argsort", .torch = "argsort", .operands = {{"x"}}, .takes = Takes::all, .gives = Gives::index, .gradient = Gradient::none, .method = "argsort"},
      {.name = "embedding", .torch = "embedding", .onnx = {"Gather", 13}, .operands = {{"indices", Holds::indices}, {"weight"}}, .takes = Takes::all},
      {.name = "gather", .torch = "gather", .onnx = {"GatherElements", 13}, .operands = {{"x"}, {"indices", Holds::indices}}, .takes = Takes::all, .method = "gather"},
      {.name = "index_add", .torch = "index_add", .operands = {{"x"}, {"indices", Holds::indices}, {"source"}}, .takes = Takes::numbers, .roundings = 5, .method = "index_add"},
      {.name = "index_select", .torch = "index_select", .onnx = {"Gather", 13}, .operands = {{"x"}, {"indices", Holds::indices}}, .takes = Takes::all, .method = "index_select"},
      {.name = "one_hot", .torch = "one_hot", .onnx = {"OneHot", 28}, .operands = {{"indices", Holds::indices}}, .takes = Takes::all, .gradient = Gradient::none},
      {.name = "scatter", .torch = "scatter", .onnx = {"ScatterElements", 18}, .operands = {{"x"}, {"indices", Holds::indices}, {"source"}}, .takes = Takes::all, .solvers = "last_picks", .method = "scatter"},
      {.name = "scatter_add", .torch = "scatter_add", .onnx = {"ScatterElements(add)", 18}, .operands = {{"x"}, {"indices", Holds::indices}, {"source"}}, .takes = Takes::numbers, .roundings = 5, .method = "scatter_add"},
      {.name = "scatter_reduce", .torch = "scatter_reduce", .onnx = {"ScatterElements(reduction)", 18}, .operands = {{"x"}, {"indices", Holds::indices}, {"source"}}, .takes = Takes::numbers, .method = "scatter_reduce"},
      {.name = "sort", .torch = "sort", .operands = {{"x"}}, .takes = Takes::all, .solvers = "argsort", .method = "sort"},
      {.name = "topk", .torch = "topk", .onnx = {"TopK", 24}, .operands = {{"x"}}, .takes = Takes::all, .solvers = "argsort", .method = "topk"},
  };
}
// clang-format on

}  // namespace clnet::ops
