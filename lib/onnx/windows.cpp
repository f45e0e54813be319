#include "lib/onnx/windows.h"

#include <fmt/format.h>

#include <algorithm>

#include "clnet/ops/conv.h"

namespace clnet::onnx {

bool Windows::dilated() const {
  return std::any_of(dilations.begin(), dilations.end(), [](auto dilation) { return dilation != 1; });
}

bool Windows::pads_fit() const {
  for (std::size_t d = 0; d < rank(); ++d)
    if (std::max(before[d], after[d]) * 2 > kernel[d]) return false;
  return true;
}

Tensor convolution(const Tensor& x, const Tensor& weight, const Tensor& bias, const Windows& w, std::int64_t groups) {
  switch (w.rank()) {
    case 1:
      return conv1d(x, weight, bias,
                    {.stride = w.strides[0], .padding = w.padding1(), .dilation = w.dilations[0], .groups = groups});
    case 2:
      return conv2d(x, weight, bias,
                    {.stride = Windows::pair(w.strides),
                     .padding = w.padding2(),
                     .dilation = Windows::pair(w.dilations),
                     .groups = groups});
    default:
      return conv3d(x, weight, bias,
                    {.stride = Windows::triple(w.strides),
                     .padding = w.padding3(),
                     .dilation = Windows::triple(w.dilations),
                     .groups = groups});
  }
}

Windows Windows::of(const Call& call, const Shape& input, std::vector<std::int64_t> kernel) {
  Windows w;
  const auto given = call.integers("kernel_shape");
  w.kernel = std::move(kernel);
  if (!given.empty()) w.kernel = given;
  const auto rank = w.kernel.size();
  if (rank < 1 || rank > 3 || static_cast<std::size_t>(input.rank()) != rank + 2)
    call.refuse(fmt::format("a kernel of {} dimensions on {}", rank, clnet::to_string(input)));
  const auto list = [&](std::string_view name, std::int64_t otherwise, std::int64_t least) {
    auto values = call.integers(name);
    if (values.empty()) values.assign(rank, otherwise);
    if (values.size() != rank) call.fail(fmt::format("{} has {} numbers instead of {}", name, values.size(), rank));
    for (const auto value : values)
      if (value < least || value > INT32_MAX) call.fail(fmt::format("{} has {}", name, value));
    return values;
  };
  for (const auto extent : w.kernel)
    if (extent < 1 || extent > INT32_MAX) call.fail(fmt::format("kernel_shape has {}", extent));
  w.strides = list("strides", 1, 1);
  w.dilations = list("dilations", 1, 1);
  w.ceil_mode = call.attribute("ceil_mode", std::int64_t{0}) != 0;
  w.before.assign(rank, 0);
  w.after.assign(rank, 0);
  const auto automatic = call.attribute("auto_pad", std::string_view("NOTSET"));
  if (automatic == "NOTSET") {
    const auto pads = call.integers("pads");
    if (!pads.empty() && pads.size() != 2 * rank)
      call.fail(fmt::format("pads has {} numbers instead of {}", pads.size(), 2 * rank));
    for (std::size_t d = 0; !pads.empty() && d < rank; ++d) {
      w.before[d] = pads[d];
      w.after[d] = pads[d + rank];
      if (std::min(w.before[d], w.after[d]) < 0 || std::max(w.before[d], w.after[d]) > INT32_MAX)
        call.refuse(fmt::format("pads of {} and {}", w.before[d], w.after[d]));
    }
  } else if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    // As many results as ceil(extent / stride); an odd pad is longer at the end or the beginning. Where strides leave elements
    // out ONNX's formula gives a negative pad: its evaluator fails over an AveragePool, and onnxruntime begins behind the first
    // element, or refuses a MaxPool. Here windows begin at the first, as both have it of a Conv, and TensorFlow of all.
    for (std::size_t d = 0; d < rank; ++d) {
      const auto extent = input[static_cast<int>(d) + 2], results = (extent + w.strides[d] - 1) / w.strides[d];
      const auto total =
          std::max<std::int64_t>(0, (results - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1 - extent);
      (automatic == "SAME_UPPER" ? w.before : w.after)[d] = total / 2;
      (automatic == "SAME_UPPER" ? w.after : w.before)[d] = total - total / 2;
    }
    w.ceil_mode = false;
  } else if (automatic != "VALID") {
    call.fail(fmt::format("auto_pad is \"{}\"", automatic));
  }
  return w;
}

}  // namespace clnet::onnx
