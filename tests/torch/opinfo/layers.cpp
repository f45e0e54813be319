// Convolutions, and resizing of images.
#include "tests/torch/opinfo/adapters.h"
#include "tests/torch/opinfo/axes.h"

namespace clnet::torch::opinfo {

namespace {

template <std::size_t axes, class Options, class Function>
Adapter convolved(Function function) {
  return one([function](const Args& in) {
    const auto weight = in.tensor(1, "weight");
    Options options;
    options.stride = Of<axes>::size(in.axes(3, "stride", axes, 1));
    const auto dilation = Of<axes>::size(in.axes(5, "dilation", axes, 1));
    options.dilation = dilation;
    options.groups = in.integer(6, "groups", 1);
    const auto word = in.is_text(4, "padding") ? in.text(4, "padding", "") : "";
    if (word == "same") {
      const auto& extents = weight.shape().extents();
      const auto kernel = Of<axes>::size({extents.end() - static_cast<std::ptrdiff_t>(axes), extents.end()});
      options.padding = Of<axes>::Around::same(kernel, dilation);
    } else if (word != "valid") {
      options.padding = Of<axes>::around(in.axes(4, "padding", axes, 0));
    }
    return function(in.tensor(0), weight, in.maybe_tensor(2, "bias"), options);
  });
}

template <std::size_t axes, class Options, class Function>
Adapter transposed(Function function) {
  return one([function](const Args& in) {
    Options options;
    options.stride = Of<axes>::size(in.axes(3, "stride", axes, 1));
    options.padding = Of<axes>::around(in.axes(4, "padding", axes, 0));
    options.output_padding = Of<axes>::size(in.axes(5, "output_padding", axes, 0));
    options.groups = in.integer(6, "groups", 1);
    options.dilation = Of<axes>::size(in.axes(7, "dilation", axes, 1));
    return function(in.tensor(0), in.tensor(1, "weight"), in.maybe_tensor(2, "bias"), options);
  });
}

Tensor resized(const Args& in, const std::string& mode, bool align_corners) {
  static const std::map<std::string, Interpolation> modes{
      {"nearest", Interpolation::nearest}, {"nearest-exact", Interpolation::nearest_exact},
      {"linear", Interpolation::linear},   {"bilinear", Interpolation::bilinear},
      {"bicubic", Interpolation::bicubic}, {"trilinear", Interpolation::trilinear},
      {"area", Interpolation::area}};
  const auto known = modes.find(mode);
  if (known == modes.end()) throw Failed("unknown mode " + mode);
  InterpolateOptions options;
  options.mode = known->second;
  options.align_corners = align_corners;
  options.size = in.maybe_integers(1, "size").value_or(std::vector<std::int64_t>{});
  if (options.size.size() == 1) options.size.resize(static_cast<std::size_t>(in.tensor(0).rank()) - 2, options.size[0]);
  options.scale_factor = in.maybe_numbers(2, "scale_factor").value_or(std::vector<double>{});
  options.recompute_scale_factor = in.flag(5, "recompute_scale_factor");
  options.antialias = in.flag(6, "antialias");
  return interpolate(in.tensor(0), options);
}

}  // namespace

void add_layers(Adapters& adapters) {
  const std::string functional = "nn.functional.";
  adapters[functional + "conv1d"] = convolved<1, Conv1dFuncOptions>(conv1d);
  adapters[functional + "conv2d"] = convolved<2, Conv2dFuncOptions>(conv2d);
  adapters[functional + "conv3d"] = convolved<3, Conv3dFuncOptions>(conv3d);
  adapters[functional + "conv_transpose1d"] = transposed<1, ConvTranspose1dFuncOptions>(conv_transpose1d);
  adapters[functional + "conv_transpose2d"] = transposed<2, ConvTranspose2dFuncOptions>(conv_transpose2d);
  adapters[functional + "conv_transpose3d"] = transposed<3, ConvTranspose3dFuncOptions>(conv_transpose3d);
  adapters[functional + "interpolate"] =
      one([](const Args& in) { return resized(in, in.text(3, "mode", "nearest"), in.flag(4, "align_corners")); });
  adapters[functional + "upsample_nearest"] = one([](const Args& in) { return resized(in, "nearest", false); });
  adapters[functional + "upsample_bilinear"] = one([](const Args& in) { return resized(in, "bilinear", true); });
}

}  // namespace clnet::torch::opinfo
