// Convolutions of 1, 2 and 3 axes, and the transposed ones, by those of images: an axis of extent 1 makes a line an image, axes
// that the kernel does not reach along become one, and the slices that a volume's kernel sees become channels.
#include <fmt/format.h>

#include <limits>

#include "clnet/error.h"
#include "lib/graph/composition.h"
#include "lib/ops/axes.h"
#include "lib/ops/conv/conv2d.h"
#include "lib/ops/conv/conv_axes.h"
#include "lib/ops/conv/unfold_depth.h"

namespace clnet {

using namespace ops;

namespace {

template <class Options>
ConvAxes axes_of(const Options& options) {
  const auto strides = by_axis(options.stride), dilations = by_axis(options.dilation);
  const auto first = before(options.padding), last = after(options.padding);
  ConvAxes axes(strides.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i] = {.stride = strides[i], .before = first[i], .after = last[i], .dilation = dilations[i]};
    if constexpr (requires { options.output_padding; }) axes[i].extra = by_axis(options.output_padding)[i];
  }
  return axes;
}

/// The spatial part of a convolution.
struct Spatial {
  ConvAxes axes;
  Extents in, kernel, out;

  Spatial(ConvAxes options, const Tensor& x, const Tensor& weight, Extents output)
      : axes(std::move(options)), out(std::move(output)) {
    for (std::size_t i = 0; i < axes.size(); ++i) {
      in.push_back(x.size(static_cast<int>(i) + 2));
      kernel.push_back(weight.size(static_cast<int>(i) + 2));
    }
    if (axes.size() == 1) {
      axes.insert(axes.begin(), ConvAxis{});
      for (auto* extents : {&in, &kernel, &out}) extents->insert(extents->begin(), 1);
    }
    for (std::size_t i = 0; axes.size() > 2 && i < 2; ++i)
      if (axes[i].pointwise(kernel[i]) && axes[i + 1].pointwise(kernel[i + 1]) && in[i] * in[i + 1] <= largest_window) join(i);
  }
  bool is_image() const { return axes.size() == 2; }
  Conv2dFuncOptions image_options(std::int64_t groups) const {
    const auto &v = axes[axes.size() - 2], &h = axes.back();
    return {.stride = {v.stride, h.stride},
            .padding = {v.before, h.before, v.after, h.after},
            .dilation = {v.dilation, h.dilation},
            .groups = groups};
  }
  Pair image_output() const { return {out[out.size() - 2], out.back()}; }

 private:
  /// Axes i and i + 1, both pointwise, become one.
  void join(std::size_t i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    axes.erase(axes.begin() + at);
    for (auto* extents : {&in, &kernel, &out}) {
      (*extents)[i + 1] *= (*extents)[i];
      extents->erase(extents->begin() + at);
    }
  }
};

Tensor shaped(const Tensor& t, std::int64_t first, std::int64_t second, const Extents& rest) {
  Extents extents{first, second};
  extents.insert(extents.end(), rest.begin(), rest.end());
  return reshape(t, Shape(std::move(extents)));
}

/// The first two axes after the batch exchanged: {N, C, D, H, W} to {N, D, C, H, W}.
Tensor exchanged(const Tensor& t) { return permute(t, {0, 2, 1, 3, 4}); }

/// Throws ShapeError unless a volume of `channels` that is `inner` wide, unfolded, makes a tensor.
void require_unfolded(std::string_view op, const Tensor& x, double images, std::int64_t channels, std::int64_t kernel,
                      std::int64_t inner) {
  constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
  if (images * static_cast<double>(channels) * static_cast<double>(kernel) * static_cast<double>(inner) >
      static_cast<double>(largest))
    throw ShapeError(fmt::format("{}: {}, unfolded to {} images of {} times {} channels, has more than {} elements", op,
                                 to_string(x.spec()), images, channels, kernel, largest));
}

/// The result of the batch that one sample makes, or of a batch.
Tensor as_given(const Tensor& y, bool one_sample) { return one_sample ? squeeze(y, 0) : y; }

/// Whether images of a volume are what Winograd's solvers take. They are made for both directions at once; other volumes are read
/// where they lie, where a solver can.
bool suits_winograd(const Spatial& s, std::int64_t groups) {
  for (std::size_t i = 1; i < 3; ++i)
    if (s.kernel[i] != 3 || s.axes[i].stride != 1 || s.axes[i].dilation != 1) return false;
  return groups == 1 && s.axes[0].stride == 1;
}

/// The result of a convolution of x, as one function.
Tensor noted(const Tensor& y, std::string_view name, const Tensors& inputs, const ConvAxes& axes, std::int64_t groups) {
  note_composition([&] {
    const auto all = [&](std::int64_t ConvAxis::*part) {
      Extents result;
      for (const auto& axis : axes) result.push_back(axis.*part);
      return result;
    };
    return Composition{name,
                       inputs,
                       {{"strides", all(&ConvAxis::stride)},
                        {"before", all(&ConvAxis::before)},
                        {"after", all(&ConvAxis::after)},
                        {"dilations", all(&ConvAxis::dilation)},
                        {"extra", all(&ConvAxis::extra)},
                        {"groups", groups}},
                       {y}};
  });
  return y;
}

/// `given`: x as the caller gave it, a batch or one sample.
Tensor convolve(std::string_view op, const Tensor& given, const Tensor& weight, const Tensor& bias, const ConvAxes& axes,
                std::int64_t groups) {
  const auto output = conv_output(op, given, weight, bias, axes, groups, false);
  const bool one = is_one_sample(given, axes.size());
  const Tensor x = one ? unsqueeze(given, 0) : given;
  const Spatial s(axes, x, weight, output);
  const auto n = x.size(0), c = x.size(1), o = weight.size(0);
  if (s.is_image()) {
    const Tensor y = conv2d_sized(shaped(x, n, c, s.in), shaped(weight, o, weight.size(1), s.kernel), bias, s.image_output(),
                                  s.image_options(groups));
    return noted(as_given(shaped(y, n, o, output), one), "conv", {given, weight, bias}, axes, groups);
  }
  const auto kernel = s.kernel[0];
  require_unfolded(op, given, static_cast<double>(n) * static_cast<double>(s.out[0]), c, kernel, s.in[1] * s.in[2]);
  const DepthWindows windows{s.in[0], s.out[0], kernel, s.axes[0]};
  const Tensor filters = shaped(weight, o, weight.size(1) * kernel, {s.kernel[1], s.kernel[2]});
  const Tensor y =
      suits_winograd(s, groups)
          ? conv2d_sized(unfold_depth(x, windows), filters, bias, s.image_output(), s.image_options(groups), s.out[0])
          : conv2d_of_volumes(x, filters, bias, s.image_output(), s.image_options(groups), windows);
  return noted(as_given(shaped(y, n, o, output), one), "conv", {given, weight, bias}, axes, groups);
}

Tensor convolve_transposed(std::string_view op, const Tensor& given, const Tensor& weight, const Tensor& bias,
                           const ConvAxes& axes, std::int64_t groups) {
  const auto output = conv_output(op, given, weight, bias, axes, groups, true);
  const bool one = is_one_sample(given, axes.size());
  const Tensor x = one ? unsqueeze(given, 0) : given;
  const Spatial s(axes, x, weight, output);
  const auto n = x.size(0), c = x.size(1), o = weight.size(1) * groups;
  Tensor y;
  if (s.is_image()) {
    y = conv2d_backward_data(shaped(x, n, c, s.in), shaped(weight, c, weight.size(1), s.kernel), s.image_output(),
                             s.image_options(groups));
    y = shaped(y, n, o, output);
  } else {
    const auto kernel = s.kernel[0];
    require_unfolded(op, given, static_cast<double>(n) * static_cast<double>(s.in[0]), o, kernel, s.out[1] * s.out[2]);
    const DepthWindows windows{s.out[0], s.in[0], kernel, s.axes[0]};
    const Tensor filters = shaped(weight, c, weight.size(1) * kernel, {s.kernel[1], s.kernel[2]});
    const auto image = s.image_options(groups);
    if (suits_winograd(s, groups) || !phases_are_even(windows, {s.kernel[1], s.kernel[2]}, image.stride)) {
      const Tensor images = shaped(exchanged(x), n * s.in[0], c, {s.in[1], s.in[2]});
      y = fold_depth(conv2d_backward_data(images, filters, s.image_output(), image), windows);
    } else {
      y = conv2d_of_volumes_backward_data(shaped(x, n, c, {s.in[0] * s.in[1], s.in[2]}), filters, s.image_output(), image,
                                          windows);
      y = shaped(y, n, o, output);
    }
  }
  const Tensor biased = bias.defined() ? y + shaped(bias, o, 1, Extents(axes.size() - 1, 1)) : y;
  return noted(as_given(biased, one), "conv_transpose", {given, weight, bias}, axes, groups);
}

}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dFuncOptions& options) {
  return convolve("conv1d", x, weight, bias, axes_of(options), options.groups);
}
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dFuncOptions& options) {
  return convolve("conv2d", x, weight, bias, axes_of(options), options.groups);
}
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv3dFuncOptions& options) {
  return convolve("conv3d", x, weight, bias, axes_of(options), options.groups);
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvTranspose1dFuncOptions& options) {
  return convolve_transposed("conv_transpose1d", x, weight, bias, axes_of(options), options.groups);
}
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvTranspose2dFuncOptions& options) {
  return convolve_transposed("conv_transpose2d", x, weight, bias, axes_of(options), options.groups);
}
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvTranspose3dFuncOptions& options) {
  return convolve_transposed("conv_transpose3d", x, weight, bias, axes_of(options), options.groups);
}

}  // namespace clnet
