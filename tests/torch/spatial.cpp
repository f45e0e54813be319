// Convolution and pooling of 1, 2 and 3 axes.
#include <fmt/format.h>

#include "tests/torch/cases.h"

namespace clnet::torch {

namespace {

std::int64_t line(const std::vector<std::int64_t>& v) { return v[0]; }
Pair image(const std::vector<std::int64_t>& v) { return {v[0], v[1]}; }
Triple volume(const std::vector<std::int64_t>& v) { return {v[0], v[1], v[2]}; }

/// Reads a size of the operation's axes.
template <auto of, std::size_t count>
struct Sizes {
  const Given& in;

  auto operator()(const char* name, std::int64_t otherwise) const { return of(in.axes(name, count, otherwise)); }
  /// Where it is absent: none.
  auto optional(const char* name) const {
    using Size = decltype(of({}));
    const auto found = in.attributes.find(name);
    return found == in.attributes.end() || found->is_null() ? std::optional<Size>{} : std::optional<Size>{(*this)(name, 1)};
  }
};

Padding1d padding(std::int64_t v) { return v; }
Padding padding(Pair v) { return {v.height, v.width}; }
Padding3d padding(Triple v) { return {v.depth, v.height, v.width}; }

/// The options of a convolution; `output_padding` of a transposed one.
template <class Options, auto of, std::size_t count>
Options conv_options(const Given& in) {
  const Sizes<of, count> sizes{in};
  Options options;
  options.stride = sizes("stride", 1);
  options.padding = padding(sizes("padding", 0));
  options.dilation = sizes("dilation", 1);
  options.groups = in.integer("groups", 1);
  if constexpr (requires { options.output_padding; }) options.output_padding = sizes("output_padding", 0);
  return options;
}

template <class Options, auto of, std::size_t count>
Options pool_options(const Given& in) {
  const Sizes<of, count> sizes{in};
  Options options;
  options.stride = sizes.optional("stride");
  options.padding = padding(sizes("padding", 0));
  options.ceil_mode = in.flag("ceil_mode");
  if constexpr (requires { options.dilation; }) options.dilation = sizes("dilation", 1);
  if constexpr (requires { options.count_include_pad; }) options.count_include_pad = in.flag("count_include_pad", true);
  if constexpr (requires { options.divisor_override; })
    if (const auto divisor = in.integer("divisor_override", 0); divisor != 0) options.divisor_override = divisor;
  return options;
}

Results indexed(const MaxPoolResult& result) { return {{{"y", result.y}, {"indices", result.indices}}, {}}; }

template <auto of, std::size_t count>
auto kernel(const Given& in) {
  return Sizes<of, count>{in}("kernel", 1);
}
template <auto of, std::size_t count>
auto output(const Given& in) {
  return Sizes<of, count>{in}("output", 1);
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
  const auto axes = static_cast<std::size_t>(in["x"].rank() - 2);
  InterpolateOptions options{.mode = mode->second, .align_corners = in.flag("align_corners")};
  if (const auto size = in.attributes.find("size"); size != in.attributes.end() && !size->is_null()) {
    options.size = in.axes("size", axes, 1);
  } else {
    const auto& scale = in.attributes.contains("scale_factor") ? in.attributes.at("scale_factor") : in.attributes.at("scale");
    options.scale_factor = scale.is_number() ? std::vector<double>{scale.get<double>()} : scale.get<std::vector<double>>();
  }
  return y(interpolate(in["x"], options));
}

}  // namespace

void add_spatial(Operations& operations) {
  operations["conv1d"] = [](const Given& in) {
    return y(conv1d(in["x"], in["weight"], in["bias"], conv_options<Conv1dOptions, line, 1>(in)));
  };
  operations["conv2d"] = [](const Given& in) {
    return y(conv2d(in["x"], in["weight"], in["bias"], conv_options<Conv2dOptions, image, 2>(in)));
  };
  operations["conv3d"] = [](const Given& in) {
    return y(conv3d(in["x"], in["weight"], in["bias"], conv_options<Conv3dOptions, volume, 3>(in)));
  };
  operations["conv_transpose1d"] = [](const Given& in) {
    return y(conv_transpose1d(in["x"], in["weight"], in["bias"], conv_options<ConvTranspose1dOptions, line, 1>(in)));
  };
  operations["conv_transpose2d"] = [](const Given& in) {
    return y(conv_transpose2d(in["x"], in["weight"], in["bias"], conv_options<ConvTranspose2dOptions, image, 2>(in)));
  };
  operations["conv_transpose3d"] = [](const Given& in) {
    return y(conv_transpose3d(in["x"], in["weight"], in["bias"], conv_options<ConvTranspose3dOptions, volume, 3>(in)));
  };
  operations["max_pool1d"] = [](const Given& in) {
    return indexed(max_pool1d_with_indices(in["x"], kernel<line, 1>(in), pool_options<MaxPool1dOptions, line, 1>(in)));
  };
  operations["max_pool2d"] = [](const Given& in) {
    return indexed(max_pool2d_with_indices(in["x"], kernel<image, 2>(in), pool_options<MaxPool2dOptions, image, 2>(in)));
  };
  operations["max_pool3d"] = [](const Given& in) {
    return indexed(max_pool3d_with_indices(in["x"], kernel<volume, 3>(in), pool_options<MaxPool3dOptions, volume, 3>(in)));
  };
  operations["avg_pool1d"] = [](const Given& in) {
    return y(avg_pool1d(in["x"], kernel<line, 1>(in), pool_options<AvgPool1dOptions, line, 1>(in)));
  };
  operations["avg_pool2d"] = [](const Given& in) {
    return y(avg_pool2d(in["x"], kernel<image, 2>(in), pool_options<AvgPool2dOptions, image, 2>(in)));
  };
  operations["avg_pool3d"] = [](const Given& in) {
    return y(avg_pool3d(in["x"], kernel<volume, 3>(in), pool_options<AvgPool3dOptions, volume, 3>(in)));
  };
  operations["adaptive_max_pool1d"] = [](const Given& in) {
    return indexed(adaptive_max_pool1d_with_indices(in["x"], output<line, 1>(in)));
  };
  operations["adaptive_max_pool2d"] = [](const Given& in) {
    return indexed(adaptive_max_pool2d_with_indices(in["x"], output<image, 2>(in)));
  };
  operations["adaptive_max_pool3d"] = [](const Given& in) {
    return indexed(adaptive_max_pool3d_with_indices(in["x"], output<volume, 3>(in)));
  };
  operations["adaptive_avg_pool1d"] = [](const Given& in) { return y(adaptive_avg_pool1d(in["x"], output<line, 1>(in))); };
  operations["adaptive_avg_pool2d"] = [](const Given& in) { return y(adaptive_avg_pool2d(in["x"], output<image, 2>(in))); };
  operations["adaptive_avg_pool3d"] = [](const Given& in) { return y(adaptive_avg_pool3d(in["x"], output<volume, 3>(in))); };
  operations["interpolate"] = interpolate_case;
}

}  // namespace clnet::torch
