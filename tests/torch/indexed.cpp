// Elements chosen by indices, and their order.
#include <map>
#include <string>

#include "tests/torch/cases.h"
#include "tests/torch/names.h"

namespace clnet::torch {

namespace {

const Names indices{"idx", "index", "indices"}, from{"src", "source", "b"};

/// Conditions are stored as numbers: "c>0".
Tensor condition(const Given& in) {
  const auto given = in.mask({"c", "mask", "cond", "condition"});
  return is_floating(given.dtype()) ? greater(given, 0.0) : given;
}

Results sorted(const Given& in, const SortResult& result) {
  in.restated({"stable", "sorted"});
  return {{{"y", result.values}, {"values", result.values}, {"indices", result.indices}, {"idx", result.indices}}, {}};
}

Tensor scatter_case(const Given& in) {
  const auto mode = in.text("reduce", "");
  const auto idx = in[indices];
  auto source = in[from];
  if (!source.defined()) source = full(idx.shape(), in.number("value", 0));
  if (mode == "add" || mode == "sum") return scatter_add(in[input], in.dim(0), idx, source);
  if (mode == "multiply") return scatter_reduce(in[input], in.dim(0), idx, source, ScatterReduction::prod);
  if (!mode.empty()) throw Failed("unknown reduction " + mode);
  return scatter(in[input], in.dim(0), idx, source);
}

Tensor scatter_reduce_case(const Given& in) {
  const std::map<std::string, ScatterReduction> known{{"sum", ScatterReduction::sum},
                                                      {"prod", ScatterReduction::prod},
                                                      {"mean", ScatterReduction::mean},
                                                      {"amax", ScatterReduction::amax},
                                                      {"amin", ScatterReduction::amin}};
  const auto mode = known.find(in.text("reduce", ""));
  if (mode == known.end()) throw Failed("unknown reduction " + in.text("reduce", ""));
  return scatter_reduce(in[input], in.dim(0), in[indices], in[from], mode->second, in.flag("include_self", true));
}

}  // namespace

void add_indexed(Operations& operations) {
  operations["gather"] =
      operations["take_along_dim"] = [](const Given& in) { return y(gather(in[input], in.dim(0), in[indices])); };
  operations["scatter"] = [](const Given& in) { return y(scatter_case(in)); };
  operations["scatter_add"] = [](const Given& in) { return y(scatter_add(in[input], in.dim(0), in[indices], in[from])); };
  operations["scatter_reduce"] = [](const Given& in) { return y(scatter_reduce_case(in)); };
  operations["index_add"] = [](const Given& in) {
    return y(index_add(in[input], in.dim(0), in[indices], in[from], in.number("alpha", 1)));
  };
  operations["index_select"] = [](const Given& in) { return y(index_select(in[input], in.dim(0), in[indices])); };
  operations["masked_fill"] = [](const Given& in) {
    return y(masked_fill(in[input], condition(in), in.parameter(0, "value", 0)));
  };
  operations["where"] = [](const Given& in) { return y(where(condition(in), in[{"a", "x", "input"}], in[{"b", "y", "other"}])); };
  operations["sort"] = [](const Given& in) { return sorted(in, sort(in[input], in.dim(-1), in.flag("descending"))); };
  operations["argsort"] = [](const Given& in) {
    in.restated("stable");
    return y(argsort(in[input], in.dim(-1), in.flag("descending")));
  };
  operations["topk"] = [](const Given& in) {
    const auto k = static_cast<std::int64_t>(in.parameter(0, "k", 1));
    const auto dims = in.dims();
    return sorted(in, topk(in[input], k, dims ? dims->at(0) : -1, in.flag("largest", true)));
  };
}

}  // namespace clnet::torch
