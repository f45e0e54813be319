// nms on the host: what remains depends on what remained before.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/graph/require.h"
#include "lib/ops/elementwise/elementwise.h"
#include "lib/ops/index/known.h"

namespace clnet {

namespace ops {

namespace {

struct Box {
  float left, top, right, bottom;

  float area() const { return (right - left) * (bottom - top); }
  /// The part of both that they have in common.
  float overlap(const Box& other) const {
    const float width = std::max(0.0F, std::min(right, other.right) - std::max(left, other.left));
    const float height = std::max(0.0F, std::min(bottom, other.bottom) - std::max(top, other.top));
    return width * height / (area() + other.area() - width * height);
  }
};

}  // namespace

}  // namespace ops

Tensor nms(const Tensor& boxes, const Tensor& scores, double iou_threshold) {
  constexpr std::string_view op = "nms";
  require_defined(op, {{"boxes", boxes}, {"scores", scores}});
  ops::require_floating(op, boxes.spec());
  ops::require_floating(op, scores.spec());
  refuse_f64(op, "boxes", boxes.spec());
  refuse_f64(op, "scores", scores.spec());
  if (boxes.rank() != 2 || boxes.size(1) != 4 || scores.shape() != Shape{boxes.size(0)})
    throw ShapeError(fmt::format("{}: boxes {} and scores {} must be {{n, 4}} and {{n}}", op, to_string(boxes.shape()),
                                 to_string(scores.shape())));
  if (std::isnan(iou_threshold)) throw Error(fmt::format("{}: the threshold is no number", op));
  ops::require_known(op);
  const auto corners = boxes.to_vector<float>(), score = scores.to_vector<float>();
  std::vector<std::size_t> order(score.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // NaN before all numbers, as in a descending sort().
  const auto better = [](float a, float b) { return a != a ? b == b : a > b; };
  std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) { return better(score[i], score[j]); });
  const auto box = [&](std::size_t i) {
    return ops::Box{corners[4 * i], corners[4 * i + 1], corners[4 * i + 2], corners[4 * i + 3]};
  };
  std::vector<ops::Box> kept;
  std::vector<std::int64_t> indices;
  for (const auto i : order) {
    const auto one = box(i);
    if (std::any_of(kept.begin(), kept.end(), [&](const auto& other) { return other.overlap(one) > iou_threshold; })) continue;
    kept.push_back(one);
    indices.push_back(static_cast<std::int64_t>(i));
  }
  return Tensor::from(indices);
}

}  // namespace clnet
