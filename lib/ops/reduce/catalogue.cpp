// The operations of clnet/ops/reduce.h; lib/ops/catalogue.h says what the columns mean.
#include "lib/ops/catalogue.h"

namespace clnet::ops {

// clang-format off
std::vector<Operation> reduce_operations() {
  return {
      {.name = "all", .torch = "all", .operands = {{"x"}}, .takes = Takes::all, .gives = Gives::boolean, .gradient = Gradient::none, .solvers = "reduce", .method = "all"},
      {.name = "aminmax", .torch = "aminmax", .operands = {{"x"}}, .takes = Takes::all, .solvers = "reduce", .method = "aminmax"},
      {.name = "any", .torch = "any", .operands = {{"x"}}, .takes = Takes::all, .gives = Gives::boolean, .gradient = Gradient::none, .solvers = "reduce", .method = "any"},
      {.name = "argmax", .torch = "argmax", .onnx = {"ArgMax", 13}, .operands = {{"x"}}, .takes = Takes::all, .gives = Gives::index, .gradient = Gradient::none, .solvers = "arg_reduce", .method = "argmax"},
      {.name = "argmin", .torch = "argmin", .onnx = {"ArgMin", 13}, .operands = {{"x"}}, .takes = Takes::all, .gives = Gives::index, .gradient = Gradient::none, .solvers = "arg_reduce", .method = "argmin"},
      {.name = "cdist", .torch = "cdist", .operands = {{"a"}, {"b"}}, .roundings = 60},
      {.name = "cosine_similarity", .torch = "cosine_similarity", .operands = {{"a"}, {"b"}}, .roundings = 80},
      {.name = "count_nonzero", .torch = "count_nonzero", .operands = {{"x"}}, .takes = Takes::all, .gives = Gives::index, .gradient = Gradient::none, .solvers = "reduce", .method = "count_nonzero"},
      {.name = "cummax", .torch = "cummax", .operands = {{"x"}}, .takes = Takes::all, .method = "cummax"},
      {.name = "cummin", .torch = "cummin", .operands = {{"x"}}, .takes = Takes::all, .solvers = "cummax", .method = "cummin"},
      {.name = "cumprod", .torch = "cumprod", .onnx = {"CumProd", 26}, .operands = {{"x"}}, .takes = Takes::all, .gives = Gives::sums, .roundings = 10, .method = "cumprod"},
      {.name = "cumsum", .torch = "cumsum", .onnx = {"CumSum", 14}, .operands = {{"x"}}, .takes = Takes::all, .gives = Gives::sums, .roundings = 10, .method = "cumsum"},
      {.name = "diff", .torch = "diff", .operands = {{"x"}}, .takes = Takes::all, .roundings = 2, .method = "diff"},
      {.name = "distance", .torch = "dist", .operands = {{"a"}, {"b"}}, .roundings = 60, .method = "distance"},
      {.name = "global_norm", .torch = "nn.utils.get_total_norm", .operands = {{"tensors[]"}}, .takes = Takes::all, .gives = Gives::f32, .roundings = 620},
      {.name = "logcumsumexp", .torch = "logcumsumexp", .operands = {{"x"}}, .roundings = 20, .method = "logcumsumexp"},
      {.name = "logsumexp", .torch = "logsumexp", .onnx = {"ReduceLogSumExp", 28}, .operands = {{"x"}}, .roundings = 60, .solvers = "reduce", .method = "logsumexp"},
      {.name = "max", .torch = "amax", .onnx = {"ReduceMax", 20}, .operands = {{"x"}}, .takes = Takes::all, .solvers = "reduce", .method = "max"},
      {.name = "mean", .torch = "mean", .onnx = {"ReduceMean", 18}, .operands = {{"x"}}, .roundings = 42, .solvers = "reduce", .method = "mean"},
      {.name = "min", .torch = "amin", .onnx = {"ReduceMin", 20}, .operands = {{"x"}}, .takes = Takes::all, .solvers = "reduce", .method = "min"},
      {.name = "nanmean", .torch = "nanmean", .operands = {{"x"}}, .roundings = 44, .solvers = "reduce", .method = "nanmean"},
      {.name = "nansum", .torch = "nansum", .operands = {{"x"}}, .roundings = 40, .solvers = "reduce", .method = "nansum"},
      {.name = "norm", .torch = "norm", .onnx = {"ReduceL2", 18}, .operands = {{"x"}}, .roundings = 50, .method = "norm"},
      {.name = "normalize", .torch = "normalize", .operands = {{"x"}}, .roundings = 60},
      {.name = "pairwise_distance", .torch = "pairwise_distance", .operands = {{"a"}, {"b"}}, .roundings = 60},
      {.name = "prod", .torch = "prod", .onnx = {"ReduceProd", 18}, .operands = {{"x"}}, .takes = Takes::all, .gives = Gives::sums, .roundings = 6, .solvers = "reduce", .method = "prod"},
      {.name = "std_mean", .torch = "std_mean", .operands = {{"x"}}, .roundings = 60, .solvers = "reduce"},
      {.name = "stddev", .torch = "std", .operands = {{"x"}}, .roundings = 60, .solvers = "reduce", .method = "stddev"},
      {.name = "sum", .torch = "sum", .onnx = {"ReduceSum", 13}, .operands = {{"x"}}, .takes = Takes::all, .gives = Gives::sums, .roundings = 40, .solvers = "reduce", .method = "sum"},
      {.name = "sum_to", .torch = "Tensor.sum_to_size", .operands = {{"x"}}, .takes = Takes::all, .roundings = 15, .method = "sum_to"},
      {.name = "vander", .torch = "vander", .operands = {{"x"}}, .takes = Takes::all, .gives = Gives::sums, .roundings = 10},
      {.name = "var", .torch = "var", .operands = {{"x"}}, .roundings = 60, .solvers = "reduce", .method = "var"},
      {.name = "var_mean", .torch = "var_mean", .operands = {{"x"}}, .roundings = 60, .solvers = "reduce"},
  };
}
// clang-format on

}  // namespace clnet::ops
