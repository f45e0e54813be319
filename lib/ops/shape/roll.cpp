// roll: elements that leave at one end come in at the other.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/op.h"
#include "lib/graph/require.h"
#include "lib/ops/shape/strided_copy.h"

namespace clnet {

namespace {

/// A copy for each corner of the dimensions that are rolled.
class Roll : public Op {
 public:
  /// For each dimension, from 0 to its extent - 1.
  explicit Roll(std::vector<std::int64_t> shifts) : shifts_(std::move(shifts)) {}
  std::string_view name() const override { return "roll"; }
  Fields fields() const override { return {{"shifts", shifts_}}; }

  Specs infer(const Specs& inputs) const override { return inputs; }
  Tensors vjp(const Tensors& inputs, const Tensors&, const Tensors& gradients) const override {
    auto back = shifts_;
    for (std::size_t d = 0; d < back.size(); ++d)
      if (back[d] > 0) back[d] = inputs[0].size(static_cast<int>(d)) - back[d];
    return {apply(std::make_shared<Roll>(std::move(back)), {gradients[0]})};
  }
  void lower(exec::Recorder& recorder) const override {
    if (recorder.spec(recorder.output()).shape.numel() == 0) return;
    copy_corners(recorder, 0, {recorder.input(0), recorder.output(), {}});
  }

 private:
  void copy_corners(exec::Recorder& recorder, std::size_t dim, const ops::StridedCopy& part) const {
    if (dim == shifts_.size()) return ops::strided_copy(part, recorder);
    const auto& shape = recorder.spec(recorder.output()).shape;
    const auto extent = shape[static_cast<int>(dim)], shift = shifts_[dim], step = ops::strides_of(shape)[dim];
    for (const auto& [from, to, count] :
         {std::array{std::int64_t{0}, shift, extent - shift}, {extent - shift, std::int64_t{0}, shift}}) {
      if (count == 0) continue;
      auto smaller = part;
      smaller.from = part.from.at(from * step);
      smaller.to = part.to.at(to * step);
      smaller.dims.push_back({count, step, step});
      copy_corners(recorder, dim + 1, smaller);
    }
  }

  std::vector<std::int64_t> shifts_;
};

}  // namespace

Tensor roll(const Tensor& x, const std::vector<std::int64_t>& shifts, const Dims& dims) {
  require_defined("roll", {{"x", x}});
  if (shifts.size() != dims.size())
    throw ShapeError(fmt::format("roll: {} shifts for {} dimensions", shifts.size(), dims.size()));
  std::vector<std::int64_t> all(static_cast<std::size_t>(x.rank()), 0);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int at = require_dim("roll", x, dims[i]);
    const auto extent = x.size(at);
    auto& shift = all[static_cast<std::size_t>(at)];
    if (extent > 0) shift = (shift + shifts[i] % extent + extent) % extent;
  }
  // More rolled dimensions at once would be more and smaller copies.
  constexpr int most_at_once = 2;
  Tensor result = x;
  std::vector<std::int64_t> some(all.size(), 0);
  int count = 0;
  const auto roll_some = [&] {
    if (count > 0) result = apply(std::make_shared<Roll>(some), {result});
    some.assign(all.size(), 0);
    count = 0;
  };
  for (std::size_t d = 0; d < all.size(); ++d) {
    if (all[d] == 0) continue;
    some[d] = all[d];
    if (++count == most_at_once) roll_some();
  }
  roll_some();
  return result;
}

}  // namespace clnet
