// What follows a detector: the best scores, boxes without doubles, features of boxes, crops that are turned and scaled, and
// places of maps. Each is compared with plain loops in double.
#include <clnet/clnet.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

using namespace clnet;

namespace {

using Values = std::vector<double>;

void check(const std::string& name, const Tensor& got, const Shape& shape, const Values& wanted) {
  const auto values = got.to_vector<double>();
  const bool right = got.shape() == shape && std::equal(values.begin(), values.end(), wanted.begin(), wanted.end(),
                                                        [](double a, double b) { return std::abs(a - b) < 1e-4; });
  std::cout << name << ": " << got.spec() << (right ? " right" : " WRONG") << '\n';
}

Values random_values(std::size_t count, unsigned seed, double low = 0, double high = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(static_cast<float>(low), static_cast<float>(high));
  Values all(count);
  for (double& v : all) v = uniform(random);
  return all;
}

struct Map {
  Values values;
  int height, width;
  double at(int c, int y, int x) const { return values[static_cast<std::size_t>((c * height + y) * width + x)]; }
  /// 0 outside.
  double padded(int c, int y, int x) const { return y < 0 || x < 0 || y >= height || x >= width ? 0 : at(c, y, x); }
  double bilinear(int c, double y, double x) const {
    const int y0 = static_cast<int>(std::floor(y)), x0 = static_cast<int>(std::floor(x));
    const double v = y - y0, u = x - x0;
    return (1 - v) * ((1 - u) * padded(c, y0, x0) + u * padded(c, y0, x0 + 1)) +
           v * ((1 - u) * padded(c, y0 + 1, x0) + u * padded(c, y0 + 1, x0 + 1));
  }
};

}  // namespace

int main() {
  constexpr std::size_t n = 40;
  const auto corners = random_values(2 * n, 1, 0, 20), extents = random_values(2 * n, 2, 4, 14), scores = random_values(n, 3);
  Values boxes;
  for (std::size_t i = 0; i < n; ++i)
    boxes.insert(boxes.end(),
                 {corners[2 * i], corners[2 * i + 1], corners[2 * i] + extents[2 * i], corners[2 * i + 1] + extents[2 * i + 1]});
  const Tensor all_boxes = Tensor::from(boxes, {n, 4}), all_scores = Tensor::from(scores);

  // The best 20, then what remains of them.
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return scores[a] > scores[b]; });
  const auto [best, places] = topk(all_scores, 20);
  Values wanted_scores, wanted_places;
  for (std::size_t i = 0; i < 20; ++i) {
    wanted_scores.push_back(scores[order[i]]);
    wanted_places.push_back(static_cast<double>(order[i]));
  }
  check("topk", best, {20}, wanted_scores);
  check("places", places, {20}, wanted_places);

  const auto overlap = [&](std::size_t a, std::size_t b) {
    const double *p = &boxes[4 * a], *q = &boxes[4 * b];
    const double w = std::max(0.0, std::min(p[2], q[2]) - std::max(p[0], q[0])),
                 h = std::max(0.0, std::min(p[3], q[3]) - std::max(p[1], q[1]));
    return w * h / ((p[2] - p[0]) * (p[3] - p[1]) + (q[2] - q[0]) * (q[3] - q[1]) - w * h);
  };
  Values kept;
  for (std::size_t i = 0; i < 20; ++i)
    if (std::none_of(kept.begin(), kept.end(),
                     [&](double k) { return overlap(order[static_cast<std::size_t>(k)], order[i]) > 0.3; }))
      kept.push_back(static_cast<double>(i));
  const Tensor remaining = nms(all_boxes[places], best, 0.3);
  check("nms", remaining, {static_cast<std::int64_t>(kept.size())}, kept);

  // Features of the first five boxes that remain.
  const Map map{random_values(2 * 16 * 16, 4), 16, 16};
  const Tensor features = Tensor::from(map.values, {1, 2, 16, 16});
  const Tensor chosen = all_boxes[places][remaining].narrow(0, 0, 5);
  const Tensor rois = cat({zeros({5, 1}), chosen}, 1);
  const auto aligned = roi_align(features, rois, 3, {.spatial_scale = 0.5, .sampling_ratio = 2, .aligned = true});
  Values parts;
  for (std::size_t k = 0; k < 5; ++k)
    for (int c = 0; c < 2; ++c)
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
          const double* box = &boxes[4 * order[static_cast<std::size_t>(kept[k])]];
          const double left = box[0] / 2 - 0.5, top = box[1] / 2 - 0.5;
          const double w = (box[2] - box[0]) / 2 / 3, h = (box[3] - box[1]) / 2 / 3;
          double sum = 0;
          for (int a = 0; a < 2; ++a)
            for (int b = 0; b < 2; ++b) {
              double y = top + h * (i + (a + 0.5) / 2), x = left + w * (j + (b + 0.5) / 2);
              if (y < -1 || y > 16 || x < -1 || x > 16) continue;  // as torchvision: 0 there, the border's values near it
              y = std::clamp(y, 0.0, 15.0);
              x = std::clamp(x, 0.0, 15.0);
              sum += map.bilinear(c, y, x) / 4;
            }
          parts.push_back(sum);
        }
  check("roi_align", aligned, {5, 2, 3, 3}, parts);

  // A crop that is turned by 30 degrees and scaled.
  const double cosine = 0.7 * std::cos(0.5235987755982988), sine = 0.7 * std::sin(0.5235987755982988);
  const Tensor theta = Tensor::from({cosine, -sine, 0.1, sine, cosine, -0.2}, {1, 2, 3});
  const Tensor grid = affine_grid(theta, {1, 2, 8, 10});
  Values crop, edges;
  for (int c = 0; c < 2; ++c)
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 10; ++j) {
        const double y = (2.0 * i + 1) / 8 - 1, x = (2.0 * j + 1) / 10 - 1;
        const double u = cosine * x - sine * y + 0.1, v = sine * x + cosine * y - 0.2;
        const double row = ((v + 1) * 16 - 1) / 2, column = ((u + 1) * 16 - 1) / 2;
        crop.push_back(map.bilinear(c, row, column));
        edges.push_back(map.at(c, static_cast<int>(std::nearbyint(std::clamp(row, 0.0, 15.0))),
                               static_cast<int>(std::nearbyint(std::clamp(column, 0.0, 15.0)))));
      }
  check("grid_sample", grid_sample(features, grid), {1, 2, 8, 10}, crop);
  check("grid_sample nearest", grid_sample(features, grid, {.mode = Interpolation::nearest, .padding = GridPadding::border}),
        {1, 2, 8, 10}, edges);

  // Peaks of a map: the values at places, and a heat map of them.
  const Tensor heat = features[0].max({0});
  Values heights(256);
  for (int y = 0; y < 16; ++y)
    for (int x = 0; x < 16; ++x) heights[static_cast<std::size_t>(16 * y + x)] = std::max(map.at(0, y, x), map.at(1, y, x));
  const auto peaks = topk(heat.flatten(0), 6);
  const Tensor at = stack({peaks.indices.floor_divide(16), peaks.indices.remainder(16)}, 1);
  check("gather_nd", gather_nd(heat, at), {6}, [&] {
    auto sorted = heights;
    std::sort(sorted.rbegin(), sorted.rend());
    return Values(sorted.begin(), sorted.begin() + 6);
  }());
  const auto bound = peaks.values.min().item<double>();
  auto only_peaks = heights;
  for (double& v : only_peaks) v = v >= bound ? v : 0;
  check("scatter_nd", scatter_nd(zeros({16, 16}), at, peaks.values), {16, 16}, only_peaks);
  check("scatter_nd sums", scatter_nd(heat, at, -peaks.values, ScatterReduction::sum), {16, 16}, [&] {
    auto rest = heights;
    for (double& v : rest) v = v >= bound ? 0 : v;
    return rest;
  }());
}
