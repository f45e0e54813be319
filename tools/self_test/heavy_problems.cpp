// Matrix products, convolutions and pooling.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/self_test/problem.h"

namespace clnet::tools {

namespace {

struct Windows {
  std::int64_t planes, h, w, out_h, out_w, kernel, stride, padding;
};

Windows windows_of(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t kernel, std::int64_t stride,
                   std::int64_t padding) {
  return {n * c, h, w, (h + 2 * padding - kernel) / stride + 1, (w + 2 * padding - kernel) / stride + 1, kernel, stride, padding};
}

/// visit(output, input) for each input element of each window, in row order.
template <class Visit>
void each_element(const Windows& p, Visit&& visit) {
  for (std::int64_t plane = 0; plane < p.planes; ++plane)
    for (std::int64_t oy = 0; oy < p.out_h; ++oy)
      for (std::int64_t ox = 0; ox < p.out_w; ++ox)
        for (std::int64_t ky = 0; ky < p.kernel; ++ky)
          for (std::int64_t kx = 0; kx < p.kernel; ++kx) {
            const auto y = oy * p.stride - p.padding + ky, x = ox * p.stride - p.padding + kx;
            if (y >= 0 && y < p.h && x >= 0 && x < p.w)
              visit(at((plane * p.out_h + oy) * p.out_w + ox), at((plane * p.h + y) * p.w + x));
          }
}

std::vector<Problem> pool_problems(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t kernel,
                                   std::int64_t stride, std::int64_t padding) {
  const auto p = windows_of(n, c, h, w, kernel, stride, padding);
  const Shape in{n, c, h, w}, out{n, c, p.out_h, p.out_w};
  const auto area = static_cast<double>(kernel * kernel);
  const auto text = fmt::format("{} by {}x{} with steps of {}", to_string(in), kernel, kernel, stride);
  const auto largest_at = [p](const Values& x) {
    std::vector<std::size_t> place(at(p.planes * p.out_h * p.out_w), SIZE_MAX);
    each_element(p, [&](std::size_t o, std::size_t i) {
      if (place[o] == SIZE_MAX || x[i] > x[place[o]]) place[o] = i;
    });
    return place;
  };
  const auto max = [=](const Tensor& x) { return max_pool2d(x, kernel, {.stride = Pair(stride), .padding = padding}); };
  const auto average = [=](const Tensor& x) { return avg_pool2d(x, kernel, {.stride = Pair(stride), .padding = padding}); };

  Problem max_forward{.op = "max_pool2d", .name = "max_pool2d of " + text, .inputs = {{in}}};
  max_forward.run = [max](const auto& t) { return std::vector{max(t[0])}; };
  max_forward.reference = [=](const auto& v) {
    Values y;
    for (auto place : largest_at(v[0])) y.push_back(v[0][place]);
    return std::vector<Values>{y};
  };
  Problem max_backward{
      .op = "max_pool2d_backward", .name = "gradient of " + max_forward.name, .inputs = {{in}, {out}}, .terms = area};
  max_backward.run = [max](const auto& t) { return gradient_of(max(t[0]), t[1], t[0]); };
  max_backward.reference = [=](const auto& v) {
    Values dx(v[0].size(), 0.0);
    const auto places = largest_at(v[0]);
    for (std::size_t o = 0; o < places.size(); ++o) dx[places[o]] += v[1][o];
    return std::vector<Values>{dx};
  };
  Problem average_forward{.op = "avg_pool2d", .name = "avg_pool2d of " + text, .inputs = {{in}}, .terms = area};
  average_forward.run = [average](const auto& t) { return std::vector{average(t[0])}; };
  average_forward.reference = [=](const auto& v) {
    Values y(at(p.planes * p.out_h * p.out_w), 0.0);
    each_element(p, [&](std::size_t o, std::size_t i) { y[o] += v[0][i] / area; });
    return std::vector<Values>{y};
  };
  Problem average_backward{
      .op = "avg_pool2d_backward", .name = "gradient of " + average_forward.name, .inputs = {{in}, {out}}, .terms = area};
  average_backward.run = [average](const auto& t) { return gradient_of(average(t[0]), t[1], t[0]); };
  average_backward.reference = [=](const auto& v) {
    Values dx(v[0].size(), 0.0);
    each_element(p, [&](std::size_t o, std::size_t i) { dx[i] += v[1][o] / area; });
    return std::vector<Values>{dx};
  };
  return {max_forward, max_backward, average_forward, average_backward};
}

}  // namespace

Problem matmul_problem(const Shape& a, const Shape& b, const MatmulOptions& options) {
  Problem result{.op = "matmul",
                 .name = fmt::format("matmul of {}{} and {}{}", to_string(a), options.transpose_a ? "'" : "", to_string(b),
                                     options.transpose_b ? "'" : ""),
                 .inputs = {{a}, {b}}};
  result.run = [options](const auto& t) { return std::vector{matmul(t[0], t[1], options)}; };
  const auto m = a[options.transpose_a ? -1 : -2], k = a[options.transpose_a ? -2 : -1], n = b[options.transpose_b ? -2 : -1];
  const auto batch = a.rank() == 3 ? a[0] : 1;
  result.terms = static_cast<double>(k);
  result.reference = [=](const auto& v) {
    Values y;
    for (std::int64_t batch_index = 0; batch_index < batch; ++batch_index)
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (std::int64_t l = 0; l < k; ++l)
            sum += v[0][at(batch_index * m * k + (options.transpose_a ? l * m + i : i * k + l))] *
                   v[1][at(batch_index * k * n + (options.transpose_b ? j * k + l : l * n + j))];
          y.push_back(sum);
        }
    return std::vector<Values>{y};
  };
  return result;
}

std::vector<Problem> make_matmul_problems(bool full) {
  std::vector<Problem> result{matmul_problem({70, 90}, {90, 50}), matmul_problem({33, 120}, {47, 120}, {.transpose_b = true}),
                              matmul_problem({2, 40, 30}, {2, 30, 40}), matmul_problem({300, 64}, {64, 3})};
  // Its routine for batches has kernels of its own, which take PoCL longer than all that is clnet's.
  result[2].slow_to_build = "clblast";
  if (!full) return result;
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      result.push_back(matmul_problem(ta ? Shape{200, 150} : Shape{150, 200}, tb ? Shape{170, 200} : Shape{200, 170}, {ta, tb}));
  result.push_back(matmul_problem({1, 1000}, {1000, 100}));
  result.push_back(matmul_problem({5, 1000}, {1000, 1}));
  result.push_back(matmul_problem({256, 256}, {256, 256}));
  result.push_back(matmul_problem({8, 17, 33}, {8, 33, 9}));
  return result;
}

std::vector<Problem> conv2d_problems(const ConvShape& s) {
  const auto& o = s.options;
  const auto pad = o.padding.top, stride = o.stride.height, dilation = o.dilation.height, groups = o.groups;
  const auto out_h = (s.h + 2 * pad - dilation * (s.kernel - 1) - 1) / stride + 1;
  const auto out_w = (s.w + 2 * pad - dilation * (s.kernel - 1) - 1) / stride + 1;
  const auto in_group = s.c / groups, out_group = s.out / groups;
  const Shape x{s.n, s.c, s.h, s.w}, weight{s.out, in_group, s.kernel, s.kernel}, y{s.n, s.out, out_h, out_w};
  /// visit(output, input, weight) for each product of the sums.
  const auto each_product = [=](auto&& visit) {
    for (std::int64_t n = 0; n < s.n; ++n)
      for (std::int64_t f = 0; f < s.out; ++f)
        for (std::int64_t oy = 0; oy < out_h; ++oy)
          for (std::int64_t ox = 0; ox < out_w; ++ox)
            for (std::int64_t c = 0; c < in_group; ++c)
              for (std::int64_t ky = 0; ky < s.kernel; ++ky)
                for (std::int64_t kx = 0; kx < s.kernel; ++kx) {
                  const auto iy = oy * stride - pad + ky * dilation, ix = ox * stride - pad + kx * dilation;
                  if (iy < 0 || iy >= s.h || ix < 0 || ix >= s.w) continue;
                  visit(at(((n * s.out + f) * out_h + oy) * out_w + ox),
                        at(((n * s.c + f / out_group * in_group + c) * s.h + iy) * s.w + ix),
                        at(((f * in_group + c) * s.kernel + ky) * s.kernel + kx));
                }
  };
  const auto text = fmt::format(
      "conv2d of {} with {}{}{}{}", to_string(x), to_string(weight), stride > 1 ? fmt::format(", steps of {}", stride) : "",
      dilation > 1 ? fmt::format(", dilation {}", dilation) : "", groups > 1 ? fmt::format(", {} groups", groups) : "");
  Problem forward{.op = "conv2d", .name = text, .inputs = {{x}, {weight}}};
  forward.terms = static_cast<double>(in_group * s.kernel * s.kernel);
  forward.run = [o](const auto& t) { return std::vector{conv2d(t[0], t[1], {}, o)}; };
  forward.reference = [=](const auto& v) {
    Values result(at(y.numel()), 0.0);
    each_product([&](auto to, auto from, auto by) { result[to] += v[0][from] * v[1][by]; });
    return std::vector<Values>{result};
  };
  Problem data{.op = "conv2d_backward_data", .name = "gradient of the input of " + text, .inputs = {{y}, {weight}}};
  data.terms = static_cast<double>(out_group * s.kernel * s.kernel);
  data.run = [o, x](const auto& t) {
    const auto input = zeros(x, t[0].dtype());
    return gradient_of(conv2d(input, t[1], {}, o), t[0], input);
  };
  data.reference = [=](const auto& v) {
    Values result(at(x.numel()), 0.0);
    each_product([&](auto to, auto from, auto by) { result[from] += v[0][to] * v[1][by]; });
    return std::vector<Values>{result};
  };
  Problem weights{.op = "conv2d_backward_weights", .name = "gradient of the weights of " + text, .inputs = {{x}, {y}}};
  weights.terms = static_cast<double>(s.n * out_h * out_w);
  weights.run = [o, weight](const auto& t) {
    const auto filter = zeros(weight, t[0].dtype());
    return gradient_of(conv2d(t[0], filter, {}, o), t[1], filter);
  };
  weights.reference = [=](const auto& v) {
    Values result(at(weight.numel()), 0.0);
    each_product([&](auto to, auto from, auto by) { result[by] += v[0][from] * v[1][to]; });
    return std::vector<Values>{result};
  };
  return {forward, data, weights};
}

/// 1x1, depthwise and 1x1, which may be one kernel.
Problem strips_problem(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t channels, std::int64_t out) {
  const auto first = conv2d_problems({n, c, h, w, channels, 1})[0],
             second = conv2d_problems({n, channels, h, w, channels, 3, {.padding = 1, .groups = static_cast<int>(channels)}})[0],
             third = conv2d_problems({n, channels, h, w, out, 1})[0];
  Problem result{
      .op = "conv2d_strips",
      .name = fmt::format("1x1, depthwise and 1x1 of {} to {} and {} channels", to_string(Shape{n, c, h, w}), channels, out),
      .inputs = {first.inputs[0], first.inputs[1], second.inputs[1], third.inputs[1]}};
  result.terms = static_cast<double>(9 * c * channels);
  result.narrow = false;
  result.run = [=](const auto& t) {
    const Tensor y = relu(conv2d(t[0], t[1]));
    return std::vector{conv2d(relu(conv2d(y, t[2], {}, {.padding = 1, .groups = static_cast<int>(channels)})), t[3])};
  };
  const auto through_relu = [](const Problem& problem, const Values& x, const Values& weight) {
    auto y = problem.reference({x, weight})[0];
    for (auto& value : y) value = std::max(value, 0.0);
    return y;
  };
  result.reference = [=](const auto& v) {
    return third.reference({through_relu(second, through_relu(first, v[0], v[1]), v[2]), v[3]});
  };
  return result;
}

std::vector<Problem> make_conv2d_problems(bool full) {
  std::vector<ConvShape> shapes{{2, 16, 12, 12, 32, 3, {.padding = 1}},
                                {2, 32, 9, 9, 16, 1, {}},
                                {2, 8, 9, 41, 16, 1, {.stride = 2}},
                                {2, 16, 14, 14, 16, 3, {.padding = 1, .groups = 16}},
                                {1, 8, 15, 13, 20, 5, {.stride = 2, .padding = 2}}};
  if (full) {
    shapes.push_back({1, 64, 28, 28, 64, 3, {.padding = 1}});
    shapes.push_back({2, 3, 33, 31, 24, 7, {.stride = 2, .padding = 3}});
    shapes.push_back({1, 24, 17, 17, 24, 3, {.padding = 2, .dilation = 2}});
    shapes.push_back({2, 12, 11, 11, 18, 3, {.stride = 2, .groups = 3}});
    shapes.push_back({3, 5, 7, 7, 9, 1, {.stride = 2}});
  }
  std::vector<Problem> result;
  for (const auto& shape : shapes)
    for (auto& problem : conv2d_problems(shape)) result.push_back(std::move(problem));
  result.push_back(strips_problem(2, 6, 9, 10, 48, 9));
  return result;
}

std::vector<Problem> make_pool_problems(bool full) {
  auto result = pool_problems(2, 5, 16, 18, 2, 2, 0);
  const auto add = [&](std::vector<Problem> more) { std::move(more.begin(), more.end(), std::back_inserter(result)); };
  if (full) {
    add(pool_problems(2, 3, 21, 40, 3, 2, 1));
    add(pool_problems(1, 7, 9, 9, 3, 1, 1));
  }
  return result;
}

}  // namespace clnet::tools
