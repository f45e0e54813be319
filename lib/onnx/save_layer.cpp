// How convolutions and pools are written.
#include <algorithm>
#include <numeric>

#include "lib/onnx/exporter.h"
#include "lib/onnx/write.h"

namespace clnet::onnx {
namespace {

/// The pads of all axes: those before, then those behind.
std::string pads_of(const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after) {
  auto pads = before;
  pads.insert(pads.end(), after.begin(), after.end());
  return write_attribute("pads", pads);
}

/// The dtype of convolutions and pools, which ONNX has of bf16 in the newest operator sets alone.
Dtype wide_of(const SaveCall& call) { return call.dtype() == Dtype::bf16 ? Dtype::f32 : call.dtype(); }
std::string in_wide(SaveCall& call) { return call.in_as(0, wide_of(call)); }
void give_narrow(SaveCall& call, const std::string& y) {
  call.give(wide_of(call) == call.out().dtype ? y : call.cast(y, call.out().dtype));
}

/// x as a batch, where it is one sample.
std::string as_batch(SaveCall& call, bool one) {
  const auto x = in_wide(call);
  return one ? call.op("Unsqueeze", {x, call.list(std::vector<std::int64_t>{0})}) : x;
}
void give_batch(SaveCall& call, const std::string& y, bool one) {
  give_narrow(call, one ? call.op("Squeeze", {y, call.list(std::vector<std::int64_t>{0})}) : y);
}

void convolution_of(SaveCall& call) {
  const bool transposed = call.name() == "conv_transpose";
  const auto strides = call.integers("strides");
  const bool one = static_cast<std::size_t>(call.rank()) == strides.size() + 1;
  std::vector<std::int64_t> kernel;
  for (std::size_t d = 0; d < strides.size(); ++d) kernel.push_back(call.fixed_extent(1, d + 2));
  std::vector<std::string> attributes{write_attribute("kernel_shape", kernel), write_attribute("strides", strides),
                                      pads_of(call.integers("before"), call.integers("after")),
                                      write_attribute("dilations", call.integers("dilations")),
                                      write_attribute("group", call.integer("groups"))};
  if (transposed) attributes.push_back(write_attribute("output_padding", call.integers("extra")));
  const auto weights = call.in_as(1, wide_of(call)), bias = call.has(2) ? call.in_as(2, wide_of(call)) : std::string();
  const auto x = as_batch(call, one);
  give_batch(call, call.op(transposed ? "ConvTranspose" : "Conv", {x, weights, bias}, std::move(attributes)), one);
}

/// Windows by division of the extents, which ONNX lacks: axis by axis, window by window.
std::string by_division(SaveCall& call, std::string x, std::string_view op, const std::vector<std::int64_t>& in,
                        const std::vector<std::int64_t>& out) {
  constexpr std::int64_t most = 256;
  for (std::size_t d = 0; d < in.size(); ++d) {
    if (in[d] == out[d]) continue;
    if (out[d] > most) call.refuse("to so many places by division has no operator of ONNX");
    const auto axis = static_cast<std::int64_t>(d) + 2;
    std::vector<std::string> parts;
    for (std::int64_t i = 0; i < out[d]; ++i) {
      const auto start = i * in[d] / out[d], end = ((i + 1) * in[d] + out[d] - 1) / out[d];
      std::vector<std::int64_t> kernel(in.size(), 1);
      kernel[d] = end - start;
      parts.push_back(call.op(op, {call.slice(x, axis, start, end)}, {write_attribute("kernel_shape", kernel)}));
    }
    x = parts.size() == 1 ? parts[0] : call.op("Concat", parts, {write_attribute("axis", axis)});
  }
  return x;
}

void pool_of(SaveCall& call) {
  const bool is_max = call.name() == "max_pool";
  const auto in = call.integers("in"), out = call.integers("out");
  auto kernel = call.integers("kernel"), strides = call.integers("stride");
  const auto before = call.integers("before"), dilations = call.integers("dilation");
  auto after = call.integers("after");
  constexpr Dtype taken[] = {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64, Dtype::i8, Dtype::u8};
  if (std::find(std::begin(taken), std::end(taken), call.dtype()) == std::end(taken))
    call.refuse("of these integers has no operator of ONNX");
  bool divides = true;
  if (call.flag("adaptive")) {
    if (in == out && call.outputs() == 1) return call.give(call.in(0));
    for (std::size_t d = 0; d < in.size(); ++d) {
      divides = divides && in[d] % out[d] == 0;
      kernel[d] = strides[d] = std::max<std::int64_t>(1, in[d] / out[d]);
    }
    if (!divides) return give_narrow(call, by_division(call, in_wide(call), is_max ? "MaxPool" : "AveragePool", in, out));
  }
  const auto divisor = is_max ? 0 : call.integer("divisor");
  bool rounds_up = false;
  const auto end_of_windows = [&](std::size_t d) { return (out[d] - 1) * strides[d] + (kernel[d] - 1) * dilations[d] + 1; };
  for (std::size_t d = 0; d < in.size(); ++d) {
    // ONNX divides what a window that was cut sums by what is left of it. With a divisor no window is cut: there are more zeros.
    if (divisor != 0) after[d] = std::max(after[d], end_of_windows(d) - in[d] - before[d]);
    const auto padded = in[d] + before[d] + after[d], window = (kernel[d] - 1) * dilations[d] + 1;
    rounds_up = rounds_up || padded < window || (padded - window) / strides[d] + 1 != out[d];
  }
  // ceil_mode is of all axes, and by old operator sets also counts a window that begins behind x, which clnet leaves out. For the
  // largest there is padding instead; of a mean x is cut, so that no element is left for such a window.
  auto x = in_wide(call);
  if (rounds_up && is_max) {
    for (std::size_t d = 0; d < in.size(); ++d) after[d] = std::max(after[d], end_of_windows(d) - in[d] - before[d]);
    rounds_up = false;
  }
  for (std::size_t d = 0; rounds_up && d < in.size(); ++d) {
    const auto read = end_of_windows(d) - before[d];
    if (read >= in[d] + after[d]) continue;
    if (read < in[d]) x = call.slice(x, static_cast<std::int64_t>(d) + 2, 0, read);
    after[d] = std::max<std::int64_t>(0, read - in[d]);
  }
  std::vector<std::string> attributes{write_attribute("kernel_shape", kernel), write_attribute("strides", strides),
                                      pads_of(before, after)};
  if (rounds_up) attributes.push_back(write_attribute("ceil_mode", std::int64_t{1}));
  if (is_max) {
    attributes.push_back(write_attribute("dilations", dilations));
    if (call.outputs() == 1) return give_narrow(call, call.op("MaxPool", {x}, std::move(attributes)));
    // ONNX's places are those in the whole tensor.
    const auto both = call.ops("MaxPool", {x}, std::move(attributes), 2);
    give_narrow(call, both[0]);
    const auto area = std::accumulate(in.begin(), in.end(), std::int64_t{1}, std::multiplies<>());
    call.give(call.cast(call.op("Mod", {both[1], call.scalar(static_cast<double>(area), Dtype::i64)}), call.out(1).dtype), 1);
    return;
  }
  const bool counts = call.flag("include_pad") || divisor != 0;
  if (counts) attributes.push_back(write_attribute("count_include_pad", std::int64_t{1}));
  auto y = call.op("AveragePool", {x}, std::move(attributes));
  if (divisor != 0) {
    const auto area = std::accumulate(kernel.begin(), kernel.end(), std::int64_t{1}, std::multiplies<>());
    const double factor = static_cast<double>(area) / static_cast<double>(divisor);
    if (factor != 1) y = call.op("Mul", {y, call.scalar(factor, wide_of(call))});
  }
  give_narrow(call, y);
}

/// Windows by division give no places in ONNX.
bool fits_pool(const SaveCall& call) {
  if (!call.flag("adaptive") || call.outputs() == 1) return true;
  const auto in = call.integers("in"), out = call.integers("out");
  for (std::size_t d = 0; d < in.size(); ++d)
    if (in[d] % out[d] != 0) return false;
  return true;
}

}  // namespace

std::vector<Saver> layer_savers() {
  return {{"conv", convolution_of},
          {"conv_transpose", convolution_of},
          {"max_pool", pool_of, fits_pool},
          {"avg_pool", pool_of, fits_pool}};
}

}  // namespace clnet::onnx
