// Order statistics, counts, elements picked by value, and sampled images.
#include "tests/torch/opinfo/adapters.h"

namespace clnet::torch::opinfo {

namespace {

Tensor any_dtype_if_empty(const Tensor& indices) { return indices.numel() == 0 ? cast(indices, Dtype::i64) : indices; }

Outputs both(const SortResult& result) { return {result.values, result.indices}; }

using Median = SortResult (*)(const Tensor&, int, bool);

Adapter median_of(Median along) {
  return [along](const Args& in) -> Outputs {
    const auto x = in.tensor(0);
    if (in.find(1, "dim") == nullptr) return {along(as_line(x), 0, false).values};
    return both(along(x, in.dim(1), in.flag(2, "keepdim")));
  };
}

Tensor quantile_case(const Args& in, bool ignores_nan) {
  static const std::map<std::string, QuantileInterpolation> rules{{"linear", QuantileInterpolation::linear},
                                                                  {"lower", QuantileInterpolation::lower},
                                                                  {"higher", QuantileInterpolation::higher},
                                                                  {"nearest", QuantileInterpolation::nearest},
                                                                  {"midpoint", QuantileInterpolation::midpoint}};
  const auto x = in.tensor(0);
  const auto rule = rules.at(in.text(4, "interpolation", "linear"));
  const auto dim = in.find(2, "dim") == nullptr ? std::nullopt : std::optional(in.dim(2));
  const bool keep = in.flag(3, "keepdim");
  if (in.is_tensor(1, "q")) {
    const auto q = in.tensor(1, "q");
    return ignores_nan ? nanquantile(x, q, dim, keep, rule) : quantile(x, q, dim, keep, rule);
  }
  const double q = in.number(1, "q");
  return ignores_nan ? nanquantile(x, q, dim, keep, rule) : quantile(x, q, dim, keep, rule);
}

using Different = UniqueResult (*)(const Tensor&);
using DifferentSlices = UniqueResult (*)(const Tensor&, int);

Adapter different(Different elements, DifferentSlices slices) {
  return [=](const Args& in) {
    in.without_effect({"sorted"});
    const auto x = in.tensor(0);
    const auto result = in.find(-1, "dim") == nullptr ? elements(x) : slices(x, in.dim(-1, "dim"));
    Outputs outputs{result.values};
    if (in.flag(-1, "return_inverse")) outputs.push_back(result.inverse);
    if (in.flag(-1, "return_counts")) outputs.push_back(result.counts);
    return outputs;
  };
}

Tensor sampled(const Args& in, const std::string& mode, const std::string& padding, bool align) {
  GridSampleOptions options;
  if (mode != "bilinear" && mode != "nearest" && mode != "bicubic") throw Failed("unknown mode " + mode);
  options.mode = mode == "nearest"   ? Interpolation::nearest
                 : mode == "bicubic" ? Interpolation::bicubic
                                     : Interpolation::bilinear;
  if (padding != "zeros" && padding != "border" && padding != "reflection") throw Failed("unknown padding " + padding);
  options.padding = padding == "zeros" ? GridPadding::zeros : padding == "border" ? GridPadding::border : GridPadding::reflection;
  options.align_corners = align;
  return grid_sample(in.tensor(0), in.tensor(1, "grid"), options);
}

bool from_right(const Args& in, int at) {
  const auto side = in.text(-1, "side", "left");
  return in.flag(at, "right") || side == "right";
}

}  // namespace

void add_ordered(Adapters& adapters) {
  adapters["take"] = one([](const Args& in) { return take(in.tensor(0), any_dtype_if_empty(in.tensor(1, "index"))); });
  adapters["take_along_dim"] = one([](const Args& in) {
    return take_along_dim(in.tensor(0), in.tensor(1, "indices"),
                          in.find(2, "dim") == nullptr ? std::nullopt : std::optional(in.dim(2)));
  });
  adapters["index_copy"] = one([](const Args& in) {
    const auto x = in.tensor(0), source = in.tensor(3, "source");
    const auto indices = as_line(in.tensor(2, "index"));
    return index_copy(x, in.dim(1), indices, x.rank() == 0 ? reshape(source, x.shape()) : source);
  });
  adapters["index_fill"] = one([](const Args& in) {
    const auto x = in.tensor(0), indices = as_line(in.tensor(2, "index"));
    const auto value = in.operand(3, "value");
    if (const auto* number = std::get_if<double>(&value)) return index_fill(x, in.dim(1), indices, *number);
    // A tensor has a gradient.
    require_one_dtype({x, std::get<Tensor>(value)});
    const auto shape = x.rank() == 0 ? x.shape() : x.shape().with(in.dim(1), indices.numel());
    return index_copy(x, in.dim(1), indices, expand(std::get<Tensor>(value), shape));
  });
  adapters["bincount"] =
      one([](const Args& in) { return bincount(in.tensor(0), in.maybe_tensor(1, "weights"), in.integer(2, "minlength", 0)); });
  adapters["histc"] = one([](const Args& in) {
    return histc(in.tensor(0), in.integer(1, "bins", 100), in.number(2, "min", 0), in.number(3, "max", 0));
  });
  adapters["isin"] = one([](const Args& in) {
    in.without_effect({"assume_unique"});
    return isin(in.tensor(0, "elements"), in.tensor(1, "test_elements"), in.flag(-1, "invert"));
  });
  adapters["kthvalue"] = [](const Args& in) {
    return both(kthvalue(in.tensor(0), in.integer(1, "k"), in.dim(2, "dim", -1), in.flag(3, "keepdim")));
  };
  adapters["median"] = median_of(median);
  adapters["nanmedian"] = median_of(nanmedian);
  adapters["mode"] = [](const Args& in) { return both(mode(in.tensor(0), in.dim(1, "dim", -1), in.flag(2, "keepdim"))); };
  adapters["quantile"] = one([](const Args& in) { return quantile_case(in, false); });
  adapters["nanquantile"] = one([](const Args& in) { return quantile_case(in, true); });
  adapters["searchsorted"] = one([](const Args& in) {
    const auto line = in.tensor(0), values = in.tensor(1, "input");
    const auto order = in.maybe_tensor(-1, "sorter");
    const auto result = searchsorted(order.defined() ? gather(line, -1, order) : line, values, from_right(in, -1));
    return in.flag(-1, "out_int32") ? cast(result, Dtype::i32) : result;
  });
  adapters["bucketize"] = one([](const Args& in) {
    const auto result = bucketize(in.tensor(0), in.tensor(1, "boundaries"), from_right(in, -1));
    return in.flag(-1, "out_int32") ? cast(result, Dtype::i32) : result;
  });
  adapters["nonzero"] = [](const Args& in) -> Outputs {
    const auto places = nonzero(in.tensor(0));
    if (!in.flag(1, "as_tuple")) return {places};
    Outputs result;
    for (std::int64_t i = 0; i < places.size(1); ++i) result.push_back(squeeze(narrow(places, 1, i, 1), 1));
    return result;
  };
  adapters["argwhere"] = one([](const Args& in) { return nonzero(in.tensor(0)); });
  adapters["masked_select"] = one([](const Args& in) { return masked_select(in.tensor(0), in.tensor(1, "mask")); });
  adapters["unique"] = different(unique, unique);
  adapters["unique_consecutive"] = different(unique_consecutive, unique_consecutive);
  adapters["cummax"] = [](const Args& in) { return both(cummax(in.tensor(0), in.dim(1))); };
  adapters["cummin"] = [](const Args& in) { return both(cummin(in.tensor(0), in.dim(1))); };
  adapters["logcumsumexp"] = one([](const Args& in) { return logcumsumexp(in.tensor(0), in.dim(1)); });
  adapters["nn.functional.grid_sample"] = one([](const Args& in) {
    return sampled(in, in.text(2, "mode", "bilinear"), in.text(3, "padding_mode", "zeros"), in.flag(4, "align_corners"));
  });
  for (const char* name : {"grid_sampler_2d", "grid_sampler_3d"})
    adapters[name] = one([](const Args& in) {
      static const std::vector<std::string> modes{"bilinear", "nearest", "bicubic"}, paddings{"zeros", "border", "reflection"};
      return sampled(in, modes.at(static_cast<std::size_t>(in.integer(2, "interpolation_mode"))),
                     paddings.at(static_cast<std::size_t>(in.integer(3, "padding_mode"))), in.flag(4, "align_corners"));
    });
}

}  // namespace clnet::torch::opinfo
