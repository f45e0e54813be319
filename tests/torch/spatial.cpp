// Convolution and pooling of 1, 2 and 3 axes.
#include <fmt/format.h>

#include "tests/torch/cases.h"
#include "tests/torch/names.h"

namespace clnet::torch {

namespace {

std::int64_t line(const std::vector<std::int64_t>& v) { return v[0]; }
Pair image(const std::vector<std::int64_t>& v) { return {v[0], v[1]}; }
Triple volume(const std::vector<std::int64_t>& v) { return {v[0], v[1], v[2]}; }

/// Reads a size of the operation's axes.
template <auto of, std::size_t count>
struct Sizes {
  const Given& in;

  auto operator()(const Names& names, std::int64_t otherwise) const { return of(in.axes(names, count, otherwise)); }
  /// Where it is absent or an empty list: none.
  auto optional(const Names& names) const {
    using Size = decltype(of({}));
    const auto* found = in.find(names);
    return found == nullptr || found->empty() ? std::optional<Size>{} : std::optional<Size>{(*this)(names, 1)};
  }
};

Padding1d padding(std::int64_t v) { return v; }
Padding padding(Pair v) { return {v.height, v.width}; }
Padding3d padding(Triple v) { return {v.depth, v.height, v.width}; }
Padding1d same(std::int64_t kernel, std::int64_t dilation) { return Padding1d::same(kernel, dilation); }
Padding same(Pair kernel, Pair dilation) { return Padding::same(kernel, dilation); }
Padding3d same(Triple kernel, Triple dilation) { return Padding3d::same(kernel, dilation); }

using Extents = std::vector<std::int64_t>;
std::pair<Extents, Extents> ends(const Padding1d& p) { return {{p.begin}, {p.end}}; }
std::pair<Extents, Extents> ends(const Padding& p) { return {{p.top, p.left}, {p.bottom, p.right}}; }
std::pair<Extents, Extents> ends(const Padding3d& p) { return {{p.front, p.top, p.left}, {p.back, p.bottom, p.right}}; }

/// The options of a convolution; `output_padding` of a transposed one.
template <class Options, auto of, std::size_t count>
Options conv_options(const Given& in) {
  in.restated({"kernel", "kernel_size", "in_channels", "out_channels", "bias"});
  const Sizes<of, count> sizes{in};
  Options options;
  options.stride = sizes("stride", 1);
  options.dilation = sizes("dilation", 1);
  options.groups = in.integer("groups", 1);
  if constexpr (requires { options.output_padding; }) options.output_padding = sizes("output_padding", 0);
  const auto* padded = in.find("padding");
  if (padded == nullptr || !padded->is_string()) {
    options.padding = padding(sizes("padding", 0));
  } else if (*padded == "same") {
    std::vector<std::int64_t> kernel;
    for (int d = 2; d < in["weight"].rank(); ++d) kernel.push_back(in["weight"].size(d));
    kernel.resize(count, 1);
    options.padding = same(of(kernel), options.dilation);
  } else if (*padded != "valid") {
    throw Failed("unknown padding " + padded->dump());
  }
  return options;
}

/// The padding may repeat the input's elements, which is done before.
template <class Options, auto of, std::size_t count, auto function>
Results conv_case(const Given& in) {
  auto options = conv_options<Options, of, count>(in);
  auto x = in[layer_input];
  if (const auto mode = in.text("padding_mode", "zeros"); mode != "zeros") {
    const auto form = pad_mode(mode);
    const auto [before, after] = ends(options.padding);
    std::vector<std::int64_t> first(static_cast<std::size_t>(x.rank()) - count), last = first;
    first.insert(first.end(), before.begin(), before.end());
    last.insert(last.end(), after.begin(), after.end());
    x = pad(x, first, last, 0, form);
    options.padding = padding(of(std::vector<std::int64_t>(count)));
  }
  return y(function(x, in["weight"], in["bias"], options));
}

template <class Options, auto of, std::size_t count>
Options pool_options(const Given& in) {
  const Sizes<of, count> sizes{in};
  Options options;
  options.stride = sizes.optional("stride");
  options.padding = padding(sizes("padding", 0));
  if constexpr (requires { options.ceil_mode; }) options.ceil_mode = in.flag("ceil_mode");
  if constexpr (requires { options.dilation; }) options.dilation = sizes("dilation", 1);
  if constexpr (requires { options.count_include_pad; }) options.count_include_pad = in.flag("count_include_pad", true);
  if constexpr (requires { options.divisor_override; })
    if (const auto divisor = in.integer("divisor_override", 0); divisor != 0) options.divisor_override = divisor;
  return options;
}

Results indexed(const Given& in, const MaxPoolResult& result) {
  in.restated("return_indices");
  return {{{"y", result.y}, {"indices", result.indices}}, {}};
}

template <auto of, std::size_t count>
auto kernel(const Given& in) {
  return Sizes<of, count>{in}({"kernel", "kernel_size"}, 1);
}

/// An extent that is null stays what it is.
template <auto of, std::size_t count>
auto output(const Given& in) {
  const Names names{"output", "output_size"};
  const auto* given = in.find(names);
  if (given == nullptr) throw Failed("there is no output size");
  if (!given->is_array()) return of(in.axes(names, count, 1));
  std::vector<std::int64_t> extents;
  for (const auto& extent : *given) {
    const auto d = static_cast<int>(extents.size()) - static_cast<int>(count);
    extents.push_back(extent.is_null() ? in[layer_input].size(d) : extent.get<std::int64_t>());
  }
  if (extents.size() == 1) extents.resize(count, extents[0]);
  if (extents.size() != count) throw Failed("output is of another rank");
  return of(extents);
}

template <auto of, std::size_t count, auto function>
Results lp_pool_case(const Given& in) {
  const auto stride = Sizes<of, count>{in}.optional("stride");
  return y(function(in[layer_input], in.number({"norm_type", "p", "power", "norm"}, 2), kernel<of, count>(in), stride,
                    in.flag("ceil_mode")));
}

template <class Options, auto of, std::size_t count, auto function>
Results unpool_case(const Given& in) {
  auto options = pool_options<Options, of, count>(in);
  if (auto size = in.integers({"output_size", "output"}); size && !size->empty()) {
    // PyTorch takes the whole shape as well.
    if (size->size() > count) size->erase(size->begin(), size->end() - static_cast<std::ptrdiff_t>(count));
    if (size->size() != count) throw Failed("output_size is of another rank");
    options.output_size = of(*size);
  }
  return y(function(in[layer_input], in[{"indices", "idx"}], kernel<of, count>(in), options));
}

Results interpolate_case(const Given& in) {
  static const std::map<std::string, Interpolation> modes{
      {"nearest", Interpolation::nearest}, {"nearest-exact", Interpolation::nearest_exact},
      {"linear", Interpolation::linear},   {"bilinear", Interpolation::bilinear},
      {"bicubic", Interpolation::bicubic}, {"trilinear", Interpolation::trilinear},
      {"area", Interpolation::area},
  };
  const auto mode = modes.find(in.text("mode", "nearest"));
  if (mode == modes.end()) throw Failed("unknown mode " + in.text("mode", ""));
  const auto axes = static_cast<std::size_t>(in[layer_input].rank() - 2);
  InterpolateOptions options{.mode = mode->second,
                             .align_corners = in.flag("align_corners"),
                             .recompute_scale_factor = in.flag("recompute_scale_factor"),
                             .antialias = in.flag("antialias")};
  if (in.find({"size", "output_size"}) != nullptr)
    options.size = in.axes({"size", "output_size"}, axes, 1);
  else if (const auto scale = in.numbers({"scale_factor", "scale"}))
    options.scale_factor = *scale;
  else
    throw Failed("there is neither size nor scale_factor");
  return y(interpolate(in[layer_input], options));
}

}  // namespace

void add_spatial(Operations& operations) {
  operations["conv1d"] = conv_case<Conv1dFuncOptions, line, 1, conv1d>;
  operations["conv2d"] = conv_case<Conv2dFuncOptions, image, 2, conv2d>;
  operations["conv3d"] = conv_case<Conv3dFuncOptions, volume, 3, conv3d>;
  operations["conv_transpose1d"] = conv_case<ConvTranspose1dFuncOptions, line, 1, conv_transpose1d>;
  operations["conv_transpose2d"] = conv_case<ConvTranspose2dFuncOptions, image, 2, conv_transpose2d>;
  operations["conv_transpose3d"] = conv_case<ConvTranspose3dFuncOptions, volume, 3, conv_transpose3d>;
  operations["max_pool1d"] = [](const Given& in) {
    return indexed(in,
                   max_pool1d_with_indices(in[layer_input], kernel<line, 1>(in), pool_options<MaxPool1dOptions, line, 1>(in)));
  };
  operations["max_pool2d"] = [](const Given& in) {
    return indexed(in,
                   max_pool2d_with_indices(in[layer_input], kernel<image, 2>(in), pool_options<MaxPool2dOptions, image, 2>(in)));
  };
  operations["max_pool3d"] = [](const Given& in) {
    return indexed(
        in, max_pool3d_with_indices(in[layer_input], kernel<volume, 3>(in), pool_options<MaxPool3dOptions, volume, 3>(in)));
  };
  operations["avg_pool1d"] = [](const Given& in) {
    return y(avg_pool1d(in[layer_input], kernel<line, 1>(in), pool_options<AvgPool1dOptions, line, 1>(in)));
  };
  operations["avg_pool2d"] = [](const Given& in) {
    return y(avg_pool2d(in[layer_input], kernel<image, 2>(in), pool_options<AvgPool2dOptions, image, 2>(in)));
  };
  operations["avg_pool3d"] = [](const Given& in) {
    return y(avg_pool3d(in[layer_input], kernel<volume, 3>(in), pool_options<AvgPool3dOptions, volume, 3>(in)));
  };
  operations["adaptive_max_pool1d"] = [](const Given& in) {
    return indexed(in, adaptive_max_pool1d_with_indices(in[layer_input], output<line, 1>(in)));
  };
  operations["adaptive_max_pool2d"] = [](const Given& in) {
    return indexed(in, adaptive_max_pool2d_with_indices(in[layer_input], output<image, 2>(in)));
  };
  operations["adaptive_max_pool3d"] = [](const Given& in) {
    return indexed(in, adaptive_max_pool3d_with_indices(in[layer_input], output<volume, 3>(in)));
  };
  operations["adaptive_avg_pool1d"] = [](const Given& in) {
    return y(adaptive_avg_pool1d(in[layer_input], output<line, 1>(in)));
  };
  operations["adaptive_avg_pool2d"] = [](const Given& in) {
    return y(adaptive_avg_pool2d(in[layer_input], output<image, 2>(in)));
  };
  operations["adaptive_avg_pool3d"] = [](const Given& in) {
    return y(adaptive_avg_pool3d(in[layer_input], output<volume, 3>(in)));
  };
  operations["max_unpool1d"] = unpool_case<MaxUnpool1dOptions, line, 1, max_unpool1d>;
  operations["max_unpool2d"] = unpool_case<MaxUnpool2dOptions, image, 2, max_unpool2d>;
  operations["max_unpool3d"] = unpool_case<MaxUnpool3dOptions, volume, 3, max_unpool3d>;
  operations["lp_pool1d"] = lp_pool_case<line, 1, lp_pool1d>;
  operations["lp_pool2d"] = lp_pool_case<image, 2, lp_pool2d>;
  operations["lp_pool3d"] = lp_pool_case<volume, 3, lp_pool3d>;
  const auto global = [](Tensor (*pool)(const Tensor&)) { return [pool](const Given& in) { return y(pool(in[layer_input])); }; };
  operations["global_avg_pool1d"] = global(global_avg_pool1d);
  operations["global_avg_pool2d"] = global(global_avg_pool2d);
  operations["global_avg_pool3d"] = global(global_avg_pool3d);
  operations["global_max_pool1d"] = global(global_max_pool1d);
  operations["global_max_pool2d"] = global(global_max_pool2d);
  operations["global_max_pool3d"] = global(global_max_pool3d);
  operations["interpolate"] = operations["upsample"] = interpolate_case;
}

}  // namespace clnet::torch
