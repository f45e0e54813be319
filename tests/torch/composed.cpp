// What PyTorch has as one function and clnet leaves to its user: made of the operations that there are.
#include "tests/torch/composed.h"

#include <cmath>
#include <numbers>

namespace clnet::torch {

namespace {

void add_functions(Operations& operations) {
  operations["identity"] = unary([](const Tensor& x) { return x * 1.0; });
  operations["exp2"] = unary([](const Tensor& x) { return exp(x * std::numbers::ln2); });
  operations["log10"] = unary([](const Tensor& x) { return log(x) / std::numbers::ln10; });
  operations["erfc"] = unary([](const Tensor& x) { return 1.0 - erf(x); });
  operations["tan"] = unary([](const Tensor& x) { return sin(x) / cos(x); });
  operations["atan"] = unary([](const Tensor& x) { return atan2(x, ones_like(x)); });
  operations["asin"] = unary([](const Tensor& x) { return atan2(x, sqrt((1.0 - x) * (1.0 + x))); });
  operations["acos"] = unary([](const Tensor& x) { return atan2(sqrt((1.0 - x) * (1.0 + x)), x); });
  operations["sinh"] = unary([](const Tensor& x) { return (expm1(x) - expm1(-x)) / 2.0; });
  operations["cosh"] = unary([](const Tensor& x) { return (exp(x) + exp(-x)) / 2.0; });
  operations["logit"] = unary([](const Tensor& x) { return log(x) - log1p(-x); });
  operations["softmax2d"] = unary([](const Tensor& x) { return softmax(x, -3); });
  operations["remainder"] = binary([](const Tensor& a, const Tensor& b) { return a - b * floor(stop_gradient(a / b)); });
  operations["rsub"] = binary([](const Tensor& a, const Tensor& b) { return b - a; });
}

void add_distances(Operations& operations) {
  operations["cosine_similarity"] = [](const Given& in) {
    const Dims dim(in.dim(1));
    const double eps = in.number("eps", 1e-8);
    const auto length = [&](const Tensor& x) { return clamp(norm(x, 2, dim), eps, INFINITY); };
    const auto a = in[first], b = in[second];
    return y(sum(a * b, dim) / (length(a) * length(b)));
  };
  operations["pairwise_distance"] = [](const Given& in) {
    const double p = in.number({"p", "norm"}, 2), eps = in.number("eps", 1e-6);
    return y(norm(in[first] - in[second] + eps, p, Dims(-1), in.flag("keepdim")));
  };
  operations["normalize"] = [](const Given& in) {
    const auto x = in[first];
    const auto length = norm(x, in.number("p", 2), Dims(in.dim(1)), true);
    return y(x / clamp(length, in.number("eps", 1e-12), INFINITY));
  };
  for (const bool root : {false, true})
    operations[root ? "std_mean" : "var_mean"] = [root](const Given& in) {
      const Dims dims(in.dims().value_or(std::vector<int>{}));
      const int correction = static_cast<int>(in.integer("correction", in.flag("unbiased", true) ? 1 : 0));
      const bool keep = in.flag("keepdim");
      const auto spread = root ? stddev(in[first], dims, correction, keep) : var(in[first], dims, correction, keep);
      return Results{{{root ? "std" : "var", spread}, {"mean", mean(in[first], dims, keep)}}, {}};
    };
}

/// Along a dimension that the functions' names give.
void add_rearranged(Operations& operations) {
  operations["fliplr"] = unary([](const Tensor& x) { return flip(x, {1}); });
  operations["flipud"] = unary([](const Tensor& x) { return flip(x, {0}); });
  operations["flip_hw"] = unary([](const Tensor& x) { return flip(x, {-2, -1}); });
  for (const char* name : {"transpose_last", "mT", "matrix_transpose"})
    operations[name] = unary([](const Tensor& x) { return transpose(x, -2, -1); });
  operations["hstack"] = [](const Given& in) {
    const auto all = in.operands();
    return y(concat(all, all.at(0).rank() == 1 ? 0 : 1));
  };
  operations["vstack"] = [](const Given& in) {
    auto all = in.operands();
    for (auto& each : all)
      if (each.rank() == 1) each = unsqueeze(each, 0);
    return y(concat(all, 0));
  };
  operations["channel_shuffle"] = [](const Given& in) {
    const auto x = in[first];
    const auto groups = static_cast<std::int64_t>(in.parameter(0, "groups", 2)), each = x.size(1) / groups;
    const auto grouped = reshape(x, {x.size(0), groups, each, x.numel() / (x.size(0) * x.size(1))});
    return y(reshape(transpose(grouped, 1, 2), x.shape()));
  };
  operations["select_scatter"] = [](const Given& in) {
    const int dim = in.dim(0);
    const auto value = unsqueeze(in[{"src", "source", "b"}], dim);
    return y(slice_update(in[first], dim, in.integer("index", 0), value));
  };
  operations["take"] = [](const Given& in) {
    const auto x = in[first], at = in[{"idx", "index", "indices"}];
    return y(reshape(gather(reshape(x, {x.numel()}), 0, reshape(at, {at.numel()})), at.shape()));
  };
  const auto middle = [](const Given& in) {
    const auto dims = in.dims();
    const auto x = dims ? in[first] : reshape(in[first], {in[first].numel()});
    const int dim = in.dim(dims ? -1 : 0);
    const auto ordered = sort(x, dim);
    const auto one = [&](const Tensor& of) {
      const auto value = narrow(of, dim, (x.size(dim) - 1) / 2, 1);
      return in.flag("keepdim") ? value : squeeze(value, dim);
    };
    return Results{{{"y", one(ordered.values)}, {"values", one(ordered.values)}, {"indices", one(ordered.indices)}}, {}};
  };
  operations["median"] = of_lines(middle);
}

}  // namespace

void add_composed(Operations& operations) {
  add_functions(operations);
  add_distances(operations);
  add_rearranged(operations);
}

}  // namespace clnet::torch
