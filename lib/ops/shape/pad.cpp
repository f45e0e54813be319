#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/exec/collect/work.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/shape/strided_copy.h"
#include "lib/ops/shape/zero_padding.h"

namespace clnet {

namespace {

using Amounts = std::vector<std::int64_t>;
constexpr std::size_t most_dims = 6;  // of kernels/shape/pad.cl

/// Inputs: x, and the value around it as a scalar that the host knows.
class Pad : public Op {
 public:
  Pad(Amounts before, Amounts after) : before_(std::move(before)), after_(std::move(after)) {}
  std::string_view name() const override { return "pad"; }
  Fields fields() const override { return {{"before", before_}, {"after", after_}}; }

  Specs infer(const Specs& inputs) const override {
    auto extents = inputs[0].shape.extents();
    for (std::size_t d = 0; d < extents.size(); ++d) extents[d] += before_[d] + after_[d];
    return {{Shape(std::move(extents)), inputs[0].dtype}};
  }
  Tensors vjp(const Tensors&, const Tensors&, const Tensors& gradients) const override {
    auto before = before_, after = after_;
    for (auto* amounts : {&before, &after})
      for (auto& amount : *amounts) amount = -amount;
    return {pad(gradients[0], before, after), Tensor{}};
  }
  void lower(exec::Recorder& recorder) const override {
    const auto& from = recorder.spec(recorder.input(0)).shape;
    const auto& to = recorder.spec(recorder.output()).shape;
    struct Dim {
      std::int64_t n = 1, m = 1, before = 0;
    };
    std::vector<Dim> dims;  // innermost first; dimensions without padding join the next one outside
    std::int64_t inner = 1;
    for (int d = to.rank(); d-- > 0;) {
      const auto at = static_cast<std::size_t>(d);
      if (before_[at] == 0 && after_[at] == 0) {
        inner *= to[d];
        continue;
      }
      dims.push_back({to[d] * inner, from[d] * inner, before_[at] * inner});
      inner = 1;
    }
    if (inner != 1 || dims.empty()) dims.push_back({inner, inner, 0});
    const auto rank = static_cast<std::int64_t>(dims.size());
    dims.resize(most_dims);

    auto& launch = recorder.kernel("pad", "pad").in("x", recorder.input(0)).out("y", recorder.output());
    const auto length = dims[0].n, rows = length == 0 ? 0 : ops::rows_per_item(to.numel() / length, length, recorder.device());
    launch.scalar("value", recorder.input(1)).args({to.numel(), rows}).define("RANK", rank);
    for (const auto& dim : dims) launch.arg(dim.n);
    for (const auto& dim : dims) launch.arg(dim.m);
    for (const auto& dim : dims) launch.arg(dim.before);
    if (rows > 0)
      launch.define("ROWS", 1).range({(to.numel() / length + rows - 1) / rows}, {1});
    else
      launch.range({to.numel()}, {64});
    launch.detail(fmt::format("{} to {}", to_string(from), to_string(to)));
  }

  const Amounts& before() const { return before_; }
  const Amounts& after() const { return after_; }

 private:
  Amounts before_, after_;
};

/// Positions in x of the elements along one padded dimension.
std::vector<std::int32_t> positions(std::int64_t extent, std::int64_t before, std::int64_t after, PadMode mode) {
  std::vector<std::int32_t> result;
  for (std::int64_t i = -before; i < extent + after; ++i) {
    auto at = i;
    if (mode == PadMode::edge) at = std::clamp<std::int64_t>(i, 0, extent - 1);
    if (mode == PadMode::reflect) at = i < 0 ? -i : i >= extent ? 2 * (extent - 1) - i : i;
    if (mode == PadMode::circular) {
      // What negative amounts leave goes round.
      const auto first = std::max<std::int64_t>(0, -before), end = extent + std::min<std::int64_t>(0, after);
      at = i < first ? i + end - first : i >= end ? i - (end - first) : i;
    }
    result.push_back(static_cast<std::int32_t>(at));
  }
  return result;
}

void check(const Tensor& x, const Amounts& before, const Amounts& after, PadMode mode) {
  const auto rank = static_cast<std::size_t>(x.rank());
  if (before.size() != rank || after.size() != rank)
    throw ShapeError(fmt::format("pad: {} amounts before and {} after were given for {}, one per dimension is needed",
                                 before.size(), after.size(), to_string(x.shape())));
  for (std::size_t d = 0; d < rank; ++d) {
    const auto extent = x.shape().extents()[d], most = std::max(before[d], after[d]);
    constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
    const bool fits = most <= largest && std::min(before[d], after[d]) >= -extent && extent + before[d] + after[d] >= 0;
    const bool has_source = mode == PadMode::constant || most <= 0 ||
                            (mode == PadMode::edge       ? extent > 0
                             : mode == PadMode::circular ? most <= extent + std::min({before[d], after[d], std::int64_t{0}})
                                                         : most < extent);
    if (!fits || !has_source)
      throw ShapeError(fmt::format("pad: [{}] before and [{}] after do not fit {}{}", fmt::join(before, ", "),
                                   fmt::join(after, ", "), to_string(x.shape()),
                                   mode == PadMode::reflect    ? " (to reflect, each must be less than the extent)"
                                   : mode == PadMode::circular ? " (circularly, each must be at most what is there to go round)"
                                                               : ""));
  }
}

}  // namespace

Tensor pad(const Tensor& x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after, double value,
           PadMode mode) {
  require_defined("pad", {{"x", x}});
  check(x, before, after, mode);
  auto y = x;
  if (mode == PadMode::constant) {
    const auto surround = Tensor::scalar(value, x.dtype());
    const Amounts none(before.size(), 0);
    auto first = none, last = none;
    std::size_t dims = 0;
    const auto flush = [&] {
      if (dims > 0) y = apply(std::make_shared<Pad>(first, last), {y, surround});
      first = last = none;
      dims = 0;
    };
    for (std::size_t d = 0; d < before.size(); ++d) {
      if (before[d] == 0 && after[d] == 0) continue;
      if (++dims == most_dims) flush();
      first[d] = before[d];
      last[d] = after[d];
      dims = std::max<std::size_t>(dims, 1);
    }
    flush();
    return y;
  }
  for (int d = 0; d < x.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (before[at] == 0 && after[at] == 0) continue;
    const auto from = positions(x.size(d), before[at], after[at], mode);
    y = index_select(y, d, Tensor::from(from, {static_cast<std::int64_t>(from.size())}));
  }
  return y;
}

std::optional<ops::ZeroPadding> ops::zero_padding(const Tensor& tensor) {
  const auto& node = node_of(tensor);
  const auto* pad = dynamic_cast<const Pad*>(node->op.get());
  if (!pad || exec::asked_value_of(tensor)) return std::nullopt;
  const auto value = exec::asked_value_of(node->inputs[1]);
  const auto* known = dynamic_cast<const HostValue*>(value.get());
  if (!known || std::any_of(known->bytes.begin(), known->bytes.end(), [](auto byte) { return byte != std::byte{0}; }))
    return std::nullopt;
  std::optional<ZeroPadding> result;
  for (std::size_t d = 0; d < pad->before().size(); ++d) {
    const auto before = pad->before()[d], after = pad->after()[d];
    if (before == 0 && after == 0) continue;
    if (result || before < 0 || after < 0) return std::nullopt;
    result = ZeroPadding{node->inputs[0], static_cast<int>(d), before};
  }
  return result;
}

}  // namespace clnet
