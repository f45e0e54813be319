// Reductions over dimensions, and sums along one.
#include <cmath>

#include "tests/torch/cases.h"
#include "tests/torch/names.h"

namespace clnet::torch {

namespace {

using Reduce = Tensor (*)(const Tensor&, const Dims&, bool);
using Place = Tensor (*)(const Tensor&, int, bool);

Operation over(Reduce reduce) {
  return [reduce](const Given& in) {
    return y(reduce(in[input], Dims(in.dims().value_or(std::vector<int>{})), in.flag("keepdim")));
  };
}

/// The index along a dimension, or in the tensor as a line where none is given.
Tensor place(const Given& in, Place find) {
  const auto dims = in.dims();
  const bool keep = in.flag("keepdim");
  if (!dims) return find(reshape(in[input], {in[input].numel()}), 0, false);
  return find(in[input], in.dim(0), keep);
}

/// Largest or smallest elements: PyTorch's max(dim) has indices, too.
Operation extreme(Reduce reduce, Place find) {
  return [reduce, find](const Given& in) {
    const auto dims = in.dims();
    // Of equal elements PyTorch's max(dim) takes the first one alone, amax all of them.
    const auto taken = [&] {
      const auto value = gather(in[input], in.dim(0), find(in[input], in.dim(0), true));
      return in.flag("keepdim") ? value : squeeze(value, in.dim(0));
    };
    auto results = over(reduce)(in);
    if (dims && dims->size() == 1) results.outputs["y"] = chosen(in, {[&] { return results.outputs["y"]; }, taken});
    results.outputs["values"] = results.outputs["y"];
    if (in.outputs.contains("indices")) results.outputs["indices"] = place(in, find);
    return results;
  };
}

Operation deviation(Tensor (*function)(const Tensor&, const Dims&, int, bool)) {
  return [function](const Given& in) {
    const auto correction = in.integer({"correction", "ddof"}, in.flag("unbiased", true) ? 1 : 0);
    return y(function(in[input], Dims(in.dims().value_or(std::vector<int>{})), static_cast<int>(correction), in.flag("keepdim")));
  };
}

}  // namespace

void add_reductions(Operations& operations) {
  operations["sum"] = over(sum);
  operations["mean"] = over(mean);
  operations["prod"] = over(prod);
  operations["logsumexp"] = over(logsumexp);
  operations["max"] = operations["amax"] = extreme(max, argmax);
  operations["min"] = operations["amin"] = extreme(min, argmin);
  operations["argmax"] = [](const Given& in) { return y(place(in, argmax)); };
  operations["argmin"] = [](const Given& in) { return y(place(in, argmin)); };
  operations["var"] = deviation(var);
  operations["std"] = operations["stddev"] = deviation(stddev);
  operations["norm"] = operations["vector_norm"] = [](const Given& in) {
    return y(norm(in[input], in.parameter(0, {"p", "ord"}, 2), Dims(in.dims().value_or(std::vector<int>{})), in.flag("keepdim")));
  };
  operations["any"] = over(any);
  operations["all"] = over(all);
  operations["cumsum"] = [](const Given& in) { return y(cumsum(in[input], in.dim(0))); };
  operations["cumprod"] = [](const Given& in) { return y(cumprod(in[input], in.dim(0))); };
  operations["trace"] = [](const Given& in) { return y(trace(in[input])); };
  operations["sum_to_size"] = operations["sum_to"] = [](const Given& in) {
    const auto shape = in.integers({"size", "shape"});
    return y(sum_to(in[input], shape ? Shape(*shape) : in.outputs.at("y").shape()));
  };
  // Of all tensors that there are.
  operations["get_total_norm"] = operations["global_norm"] = [](const Given& in) {
    auto results = y(global_norm(in.operands(), in.number("norm_type", 2)));
    results.outputs["total_norm"] = results.outputs["y"];
    return results;
  };
}

}  // namespace clnet::torch
