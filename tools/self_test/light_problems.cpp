// Operations on rows (reductions, softmax, normalisation, losses), on elements, and on places; an optimizer's step.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "lib/ops/optimize/optimizer_update.h"
#include "tools/self_test/problem.h"

namespace clnet::tools {

namespace {

/// Rows of an axis between outer and inner dimensions.
struct Lines {
  std::int64_t outer, axis, inner;
  std::size_t operator()(std::int64_t o, std::int64_t a, std::int64_t i) const { return at((o * axis + a) * inner + i); }
  template <class Visit>
  void each(Visit&& visit) const {
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i) visit(o, i);
  }
};

Problem softmax_problem(const Lines& lines, bool logarithm) {
  const Shape shape{lines.outer, lines.axis, lines.inner};
  Problem result{.op = "softmax",
                 .name = (logarithm ? "log_softmax of " : "softmax of ") + to_string(shape),
                 .inputs = {{shape, -4, 4}},
                 .terms = static_cast<double>(lines.axis)};
  result.run = [=](const auto& t) { return std::vector{logarithm ? log_softmax(t[0], 1) : softmax(t[0], 1)}; };
  result.reference = [=](const auto& v) {
    Values y(v[0].size());
    lines.each([&](auto o, auto i) {
      double sum = 0;
      for (std::int64_t a = 0; a < lines.axis; ++a) sum += std::exp(v[0][lines(o, a, i)]);
      for (std::int64_t a = 0; a < lines.axis; ++a) {
        const double x = v[0][lines(o, a, i)];
        y[lines(o, a, i)] = logarithm ? x - std::log(sum) : std::exp(x) / sum;
      }
    });
    return std::vector<Values>{y};
  };
  return result;
}

struct Reducer {
  const char* name;
  Tensor (*run)(const Tensor&, const Dims&, bool);
  double start;
  double (*join)(double, double);
};

Problem reduce_problem(const Lines& lines, const Reducer& reducer) {
  const Shape shape{lines.outer, lines.axis, lines.inner};
  // Products stay near 1.
  const bool product = reducer.start == 1;
  Problem result{.op = "reduce",
                 .name = std::string(reducer.name) + " of " + to_string(shape) + " along 1",
                 .inputs = {{shape, product ? 0.9 : -1, product ? 1.1 : 1}},
                 .terms = static_cast<double>(lines.axis)};
  result.run = [reducer](const auto& t) { return std::vector{reducer.run(t[0], {1}, false)}; };
  result.reference = [=](const auto& v) {
    Values y;
    lines.each([&](auto o, auto i) {
      double value = reducer.start;
      for (std::int64_t a = 0; a < lines.axis; ++a) value = reducer.join(value, v[0][lines(o, a, i)]);
      y.push_back(value);
    });
    return std::vector<Values>{y};
  };
  return result;
}

Problem cumsum_problem(const Lines& lines) {
  const Shape shape{lines.outer, lines.axis, lines.inner};
  Problem result{.op = "cumsum",
                 .name = "cumsum of " + to_string(shape) + " along 1",
                 .inputs = {{shape}},
                 .terms = static_cast<double>(lines.axis)};
  result.run = [](const auto& t) { return std::vector{cumsum(t[0], 1)}; };
  result.reference = [=](const auto& v) {
    Values y(v[0].size());
    lines.each([&](auto o, auto i) {
      double sum = 0;
      for (std::int64_t a = 0; a < lines.axis; ++a) y[lines(o, a, i)] = sum += v[0][lines(o, a, i)];
    });
    return std::vector<Values>{y};
  };
  return result;
}

/// The places of the largest elements so far, of which many are equal; or the logarithms of sums of exponentials.
Problem running_problem(const Lines& lines, bool largest) {
  const Shape shape{lines.outer, lines.axis, lines.inner};
  Problem result{.op = largest ? "cummax" : "logcumsumexp",
                 .name = (largest ? "cummax of " : "logcumsumexp of ") + to_string(shape) + " along 1",
                 .inputs = {largest ? Input{shape, 0, 50, Dtype::i32} : Input{shape, -4, 4}},
                 .terms = largest ? 1 : static_cast<double>(lines.axis)};
  result.narrow = !largest;
  result.run = [=](const auto& t) { return std::vector{largest ? cummax(t[0], 1).indices : logcumsumexp(t[0], 1)}; };
  result.reference = [=](const auto& v) {
    Values y(v[0].size());
    lines.each([&](auto o, auto i) {
      std::int64_t best = 0;
      double sum = 0;
      for (std::int64_t a = 0; a < lines.axis; ++a) {
        const double x = v[0][lines(o, a, i)];
        if (x >= v[0][lines(o, best, i)]) best = a;
        if (!largest) sum += std::exp(x);
        y[lines(o, a, i)] = largest ? static_cast<double>(best) : std::log(sum);
      }
    });
    return std::vector<Values>{y};
  };
  return result;
}

Problem argmax_problem(const Lines& lines) {
  const Shape shape{lines.outer, lines.axis, lines.inner};
  Problem result{
      .op = "arg_reduce", .name = "argmax of " + to_string(shape) + " along 1", .inputs = {{shape, 0, 50, Dtype::i32}}};
  result.narrow = false;
  result.run = [](const auto& t) { return std::vector{argmax(t[0], 1)}; };
  result.reference = [=](const auto& v) {
    Values y;
    lines.each([&](auto o, auto i) {
      std::int64_t best = 0;
      for (std::int64_t a = 1; a < lines.axis; ++a)
        if (v[0][lines(o, a, i)] > v[0][lines(o, best, i)]) best = a;
      y.push_back(static_cast<double>(best));
    });
    return std::vector<Values>{y};
  };
  return result;
}

struct Moments {
  double mean = 0, variance = 0;
};
template <class Value>
Moments moments(std::int64_t count, Value&& value) {
  Moments m;
  for (std::int64_t k = 0; k < count; ++k) m.mean += value(k) / static_cast<double>(count);
  for (std::int64_t k = 0; k < count; ++k) m.variance += std::pow(value(k) - m.mean, 2) / static_cast<double>(count);
  return m;
}

Problem batch_norm_problem(const Lines& lines) {
  Problem result{.op = "batch_norm",
                 .name = "batch_norm of " + to_string(Shape{lines.outer, lines.axis, lines.inner}),
                 .inputs = {{{lines.outer, lines.axis, lines.inner}, -1, 3}, {{lines.axis}}, {{lines.axis}}},
                 .terms = static_cast<double>(lines.outer * lines.inner)};
  result.run = [](const auto& t) {
    const auto [y, mean, var] = batch_norm_training(t[0], t[1], t[2]);
    return std::vector{y, mean, var};
  };
  result.reference = [=](const auto& v) {
    Values y(v[0].size()), mean, var;
    const auto count = lines.outer * lines.inner;
    for (std::int64_t a = 0; a < lines.axis; ++a) {
      const auto place = [&](std::int64_t k) { return lines(k / lines.inner, a, k % lines.inner); };
      const auto m = moments(count, [&](std::int64_t k) { return v[0][place(k)]; });
      for (std::int64_t k = 0; k < count; ++k)
        y[place(k)] = (v[0][place(k)] - m.mean) / std::sqrt(m.variance + 1e-5) * v[1][at(a)] + v[2][at(a)];
      mean.push_back(m.mean);
      var.push_back(m.variance * static_cast<double>(count) / static_cast<double>(count - 1));
    }
    return std::vector<Values>{y, mean, var};
  };
  return result;
}

Problem layer_norm_problem(std::int64_t rows, std::int64_t length) {
  Problem result{.op = "layer_norm",
                 .name = "layer_norm of " + to_string(Shape{rows, length}),
                 .inputs = {{{rows, length}, -1, 3}, {{length}}, {{length}}},
                 .terms = static_cast<double>(length)};
  result.run = [](const auto& t) { return std::vector{layer_norm(t[0], 1, t[1], t[2])}; };
  result.reference = [=](const auto& v) {
    Values y(v[0].size());
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto m = moments(length, [&](std::int64_t k) { return v[0][at(r * length + k)]; });
      for (std::int64_t k = 0; k < length; ++k)
        y[at(r * length + k)] = (v[0][at(r * length + k)] - m.mean) / std::sqrt(m.variance + 1e-5) * v[1][at(k)] + v[2][at(k)];
    }
    return std::vector<Values>{y};
  };
  return result;
}

Problem cross_entropy_problem(std::int64_t rows, std::int64_t classes, bool backward) {
  Problem result{.op = backward ? "cross_entropy_backward" : "cross_entropy",
                 .name = std::string(backward ? "gradient of " : "") + "cross_entropy of " + to_string(Shape{rows, classes}),
                 .inputs = {{{rows, classes}, -4, 4}, {{rows}, 0, static_cast<double>(classes - 1), Dtype::i32}},
                 .terms = static_cast<double>(classes)};
  result.run = [backward](const auto& t) {
    const auto loss = cross_entropy(t[0], t[1], {.reduction = Reduction::sum});
    return backward ? gradients(loss, {t[0]}) : std::vector{cross_entropy(t[0], t[1], {.reduction = Reduction::none})};
  };
  result.reference = [=](const auto& v) {
    Values losses, dx;
    for (std::int64_t r = 0; r < rows; ++r) {
      const double* row = v[0].data() + r * classes;
      const auto target = static_cast<std::int64_t>(v[1][at(r)]);
      double sum = 0;
      for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(row[c]);
      losses.push_back(std::log(sum) - row[target]);
      for (std::int64_t c = 0; c < classes; ++c) dx.push_back(std::exp(row[c]) / sum - (c == target ? 1 : 0));
    }
    return std::vector<Values>{backward ? dx : losses};
  };
  return result;
}

Problem index_add_problem(std::int64_t words, std::int64_t width, std::int64_t picks) {
  Problem result{.op = "index_add",
                 .name = "gradient of embedding of " + to_string(Shape{words, width}),
                 .inputs = {{{picks, width}}, {{picks}, 0, static_cast<double>(words - 1), Dtype::i32}},
                 .terms = static_cast<double>(picks)};
  result.run = [=](const auto& t) {
    const auto weight = zeros({words, width}, t[0].dtype());
    return gradient_of(embedding(t[1], weight), t[0], weight);
  };
  result.reference = [=](const auto& v) {
    Values y(at(words * width), 0.0);
    for (std::int64_t p = 0; p < picks; ++p)
      for (std::int64_t k = 0; k < width; ++k)
        y[at(static_cast<std::int64_t>(v[1][at(p)]) * width + k)] += v[0][at(p * width + k)];
    return std::vector<Values>{y};
  };
  return result;
}

/// The last of the picks that come to a place stays there, or the largest of them and what was there.
Problem scatter_problem(const Lines& lines, std::int64_t picks, bool largest) {
  const Shape shape{lines.outer, lines.axis, lines.inner}, picked{lines.outer, picks, lines.inner};
  Problem result{.op = largest ? "scatter_reduce" : "last_picks",
                 .name = (largest ? "scatter_reduce to " : "scatter to ") + to_string(shape) + " along 1",
                 .inputs = {{shape}, {picked, 0, static_cast<double>(lines.axis - 1), Dtype::i32}, {picked}}};
  result.run = [=](const auto& t) {
    return std::vector{largest ? scatter_reduce(t[0], 1, t[1], t[2], ScatterReduction::amax) : scatter(t[0], 1, t[1], t[2])};
  };
  result.reference = [=](const auto& v) {
    Values y = v[0];
    const Lines from{lines.outer, picks, lines.inner};
    from.each([&](auto o, auto i) {
      for (std::int64_t p = 0; p < picks; ++p) {
        double& place = y[lines(o, static_cast<std::int64_t>(v[1][from(o, p, i)]), i)];
        const double value = v[2][from(o, p, i)];
        place = largest ? std::max(place, value) : value;
      }
    });
    return std::vector<Values>{y};
  };
  return result;
}

/// Many are equal, and keep their order.
Problem argsort_problem(const Lines& lines) {
  const Shape shape{lines.outer, lines.axis, lines.inner};
  Problem result{.op = "argsort", .name = "argsort of " + to_string(shape) + " along 1", .inputs = {{shape, 0, 50, Dtype::i32}}};
  result.narrow = false;
  result.run = [](const auto& t) { return std::vector{argsort(t[0], 1)}; };
  result.reference = [=](const auto& v) {
    Values y(v[0].size());
    lines.each([&](auto o, auto i) {
      for (std::int64_t a = 0; a < lines.axis; ++a) {
        std::int64_t rank = 0;
        for (std::int64_t b = 0; b < lines.axis; ++b) {
          const double own = v[0][lines(o, a, i)], other = v[0][lines(o, b, i)];
          rank += other < own || (other == own && b < a) ? 1 : 0;
        }
        y[lines(o, rank, i)] = static_cast<double>(a);
      }
    });
    return std::vector<Values>{y};
  };
  return result;
}

/// Values and places of the largest.
Problem topk_problem(const Lines& lines, std::int64_t k) {
  const Shape shape{lines.outer, lines.axis, lines.inner};
  Problem result{
      .op = "topk", .name = "topk " + std::to_string(k) + " of " + to_string(shape) + " along 1", .inputs = {{shape, -4, 4}}};
  result.narrow = false;
  result.run = [k](const auto& t) { return std::vector{topk(t[0], k, 1).values}; };
  result.reference = [=](const auto& v) {
    const Lines kept{lines.outer, k, lines.inner};
    Values y(static_cast<std::size_t>(lines.outer * k * lines.inner));
    lines.each([&](auto o, auto i) {
      Values line;
      for (std::int64_t a = 0; a < lines.axis; ++a) line.push_back(v[0][lines(o, a, i)]);
      std::sort(line.begin(), line.end(), std::greater<>());
      for (std::int64_t a = 0; a < k; ++a) y[kept(o, a, i)] = line[static_cast<std::size_t>(a)];
    });
    return std::vector<Values>{y};
  };
  return result;
}

/// A step of Adam.
Problem optimizer_problem(std::int64_t count) {
  constexpr double rate = 0.1, shrink = 0.99, scale = 1.5, beta1 = 0.9, beta2 = 0.95, eps = 1e-3, decay = 0.01;
  const Input values{{count}}, squares{{count}, 0, 1};
  Problem result{.op = "optimizer_update",
                 .name = "a step of Adam on " + to_string(Shape{count}),
                 .inputs = {values, values, values, squares}};
  result.narrow = false;
  result.run = [](const auto& t) {
    const auto number = [](double value) { return Tensor::scalar(value); };
    return ops::optimizer_update(ops::UpdateRule::adam, {{t[0], t[1], {t[2], t[3]}}}, {decay, beta2, eps, false},
                                 {number(rate), number(shrink), number(scale), number(beta1), number(1 - beta1)});
  };
  result.reference = [](const auto& v) {
    std::vector<Values> y(3);
    for (std::size_t i = 0; i < v[0].size(); ++i) {
      const double slope = v[1][i] + decay * v[0][i], mean = beta1 * v[2][i] + (1 - beta1) * slope;
      const double square = beta2 * v[3][i] + (1 - beta2) * slope * slope;
      y[0].push_back(v[0][i] * shrink - rate * mean / (std::sqrt(square) * scale + eps));
      y[1].push_back(mean);
      y[2].push_back(square);
    }
    return y;
  };
  return result;
}

/// Planes twice as high and wide.
Problem resample_problem(std::int64_t planes, std::int64_t height, std::int64_t width) {
  Problem result{.op = "resample",
                 .name = "bilinear interpolation of " + to_string(Shape{planes, height, width}),
                 .inputs = {{{1, planes, height, width}}},
                 .terms = 4};
  result.run = [](const auto& t) {
    return std::vector{interpolate(t[0], {.scale_factor = {2}, .mode = Interpolation::bilinear})};
  };
  result.reference = [=](const auto& v) {
    // The pixel before the place and its weight; what lies outside is the edge.
    const auto before = [](std::int64_t i) { return (i + 1) / 2 - 1; };
    const auto weight = [](std::int64_t i) { return i % 2 == 0 ? 0.25 : 0.75; };
    const auto pixel = [&](std::int64_t plane, std::int64_t y, std::int64_t x) {
      const auto row = std::clamp<std::int64_t>(y, 0, height - 1), column = std::clamp<std::int64_t>(x, 0, width - 1);
      return v[0][at((plane * height + row) * width + column)];
    };
    Values result_values;
    for (std::int64_t plane = 0; plane < planes; ++plane)
      for (std::int64_t y = 0; y < 2 * height; ++y)
        for (std::int64_t x = 0; x < 2 * width; ++x) {
          double sum = 0;
          for (std::int64_t dy : {0, 1})
            for (std::int64_t dx : {0, 1})
              sum += (dy == 0 ? weight(y) : 1 - weight(y)) * (dx == 0 ? weight(x) : 1 - weight(x)) *
                     pixel(plane, before(y) + dy, before(x) + dx);
          result_values.push_back(sum);
        }
    return std::vector<Values>{result_values};
  };
  return result;
}

/// All sequences of full length; class 0 is the blank.
Problem ctc_problem(std::int64_t steps, std::int64_t batch, std::int64_t classes, std::int64_t targets) {
  Problem result{
      .op = "ctc_loss",
      .name = "ctc_loss of " + to_string(Shape{steps, batch, classes}),
      .inputs = {{{steps, batch, classes}, -3, -0.5}, {{batch, targets}, 1, static_cast<double>(classes - 1), Dtype::i32}},
      .terms = static_cast<double>(3 * steps)};
  result.run = [=](const auto& t) {
    return std::vector{ctc_loss(t[0], t[1], full({batch}, static_cast<double>(steps), Dtype::i32),
                                full({batch}, static_cast<double>(targets), Dtype::i32), {.reduction = Reduction::none})};
  };
  result.reference = [=](const auto& v) {
    Values losses;
    for (std::int64_t n = 0; n < batch; ++n) {
      const auto states = 2 * targets + 1;
      const auto label = [&](std::int64_t s) {
        return s % 2 == 0 ? 0 : static_cast<std::int64_t>(v[1][at(n * targets + s / 2)]);
      };
      // The probability of all ways to each state; before the first step, in the middle of nowhere.
      Values ways(at(states), 0.0);
      for (std::int64_t t = 0; t < steps; ++t) {
        Values next(ways.size(), 0.0);
        for (std::int64_t s = 0; s < states; ++s) {
          double sum = t == 0 ? (s < 2 ? 1.0 : 0.0) : ways[at(s)];
          if (t > 0 && s > 0) sum += ways[at(s - 1)];
          if (t > 0 && s > 1 && label(s) != 0 && label(s) != label(s - 2)) sum += ways[at(s - 2)];
          next[at(s)] = sum * std::exp(v[0][at((t * batch + n) * classes + label(s))]);
        }
        ways = next;
      }
      losses.push_back(-std::log(ways[at(states - 1)] + ways[at(states - 2)]));
    }
    return std::vector<Values>{losses};
  };
  return result;
}

/// The last two of three dimensions, or the first two, change places.
Problem transpose_problem(const Shape& shape, bool last) {
  Problem result{.op = "strided_copy",
                 .name = "permute of " + to_string(shape) + (last ? " at the end" : " at the front"),
                 .inputs = {{shape}}};
  result.run = [last](const auto& t) { return std::vector{last ? transpose(t[0], 1, 2) : transpose(t[0], 0, 1)}; };
  result.reference = [=](const auto& v) {
    const auto a = shape[0], b = shape[1], c = shape[2];
    Values y(v[0].size());
    for (std::int64_t i = 0; i < a; ++i)
      for (std::int64_t j = 0; j < b; ++j)
        for (std::int64_t k = 0; k < c; ++k)
          y[at(last ? (i * c + k) * b + j : (j * a + i) * c + k)] = v[0][at((i * b + j) * c + k)];
    return std::vector<Values>{y};
  };
  return result;
}

/// One output per function, of the same elements.
Problem elementwise_problem(const std::string& name, const Input& input,
                            std::vector<std::pair<Tensor (*)(const Tensor&), double (*)(double)>> functions) {
  Problem result{.op = "elementwise", .name = name, .inputs = {input}};
  result.run = [functions](const auto& t) {
    std::vector<Tensor> outputs;
    for (const auto& [on_device, on_host] : functions) outputs.push_back(on_device(t[0]));
    return outputs;
  };
  result.reference = [functions](const auto& v) {
    std::vector<Values> outputs;
    for (const auto& [on_device, on_host] : functions) {
      outputs.emplace_back();
      std::transform(v[0].begin(), v[0].end(), std::back_inserter(outputs.back()), on_host);
    }
    return outputs;
  };
  return result;
}

/// Division towards zero, comparisons and products of integers, where compilers go wrong.
Problem integer_problem(Dtype dtype, double range) {
  Problem result{.op = "",
                 .name = "integer arithmetic in " + std::string(to_string(dtype)),
                 .inputs = {{{500}, -range, range, dtype}, {{500}, 1, 97, dtype}}};
  result.narrow = false;
  result.run = [](const auto& t) {
    return std::vector{t[0] / t[1], t[0] / -t[1], t[0] - t[0] / t[1] * t[1], cast(less(t[0], t[1]), Dtype::i32),
                       maximum(t[0], t[1])};
  };
  result.reference = [](const auto& v) {
    std::vector<Values> outputs(5);
    for (std::size_t i = 0; i < v[0].size(); ++i) {
      const auto a = static_cast<std::int64_t>(v[0][i]), b = static_cast<std::int64_t>(v[1][i]);
      std::size_t k = 0;
      for (auto value : {a / b, a / -b, a - a / b * b, std::int64_t{a < b}, std::max(a, b)})
        outputs[k++].push_back(static_cast<double>(value));
    }
    return outputs;
  };
  return result;
}

/// What fusion makes: a product with bias, activation and residual, then a reduction of squares.
Problem fused_problem() {
  Problem result{.op = "", .name = "a fused chain", .inputs = {{{40, 24}}, {{32, 24}}, {{32}}, {{40, 32}}}, .terms = 64};
  result.run = [](const auto& t) {
    const auto y = relu(linear(t[0], t[1], t[2])) + t[3];
    return std::vector{y, mean(square(y), {1})};
  };
  result.reference = [](const auto& v) {
    Values y, squares;
    for (std::size_t r = 0; r < 40; ++r) {
      double sum = 0;
      for (std::size_t c = 0; c < 32; ++c) {
        double product = v[2][c];
        for (std::size_t k = 0; k < 24; ++k) product += v[0][r * 24 + k] * v[1][c * 24 + k];
        y.push_back(std::max(product, 0.0) + v[3][r * 32 + c]);
        sum += y.back() * y.back();
      }
      squares.push_back(sum / 32);
    }
    return std::vector<Values>{y, squares};
  };
  return result;
}

Problem places_problem() {
  Problem result{.op = "", .name = "concat, slice and pad", .inputs = {{{6, 10}}, {{6, 7}}}};
  result.run = [](const auto& t) { return std::vector{pad(slice(concat({t[0], t[1]}, 1), 1, 2, 15, 3), {0, 1}, {0, 2}, 0.5)}; };
  result.reference = [](const auto& v) {
    Values y;
    for (std::size_t r = 0; r < 6; ++r) {
      y.push_back(0.5);
      for (std::size_t c = 2; c < 15; c += 3) y.push_back(c < 10 ? v[0][r * 10 + c] : v[1][r * 7 + c - 10]);
      y.insert(y.end(), 2, 0.5);
    }
    return std::vector<Values>{y};
  };
  return result;
}

}  // namespace

std::vector<Problem> make_row_problems(bool full) {
  const Reducer reducers[] = {
      {"sum", [](const Tensor& x, const Dims& d, bool k) { return sum(x, d, k); }, 0, [](double a, double b) { return a + b; }},
      {"max", [](const Tensor& x, const Dims& d, bool k) { return max(x, d, k); }, -HUGE_VAL,
       [](double a, double b) { return std::max(a, b); }},
      {"min", [](const Tensor& x, const Dims& d, bool k) { return min(x, d, k); }, HUGE_VAL,
       [](double a, double b) { return std::min(a, b); }},
      {"prod", [](const Tensor& x, const Dims& d, bool k) { return prod(x, d, k); }, 1,
       [](double a, double b) { return a * b; }}};
  std::vector<Problem> result{softmax_problem({40, 100, 1}, false),
                              softmax_problem({3, 30, 7}, true),
                              batch_norm_problem({4, 6, 35}),
                              layer_norm_problem(30, 100),
                              cross_entropy_problem(50, 40, false),
                              cross_entropy_problem(50, 40, true),
                              index_add_problem(20, 24, 100),
                              cumsum_problem({20, 130, 1}),
                              cumsum_problem({3, 50, 20}),
                              running_problem({3, 130, 2}, true),
                              running_problem({3, 130, 2}, false),
                              argmax_problem({20, 130, 1}),
                              argmax_problem({3, 50, 20}),
                              transpose_problem({3, 40, 33}, true),
                              transpose_problem({9, 8, 20}, false),
                              scatter_problem({2, 20, 3}, 100, false),
                              scatter_problem({2, 20, 3}, 100, true),
                              argsort_problem({4, 100, 1}),
                              argsort_problem({2, 40, 3}),
                              topk_problem({3, 300, 1}, 7),
                              topk_problem({2, 40, 3}, 5),
                              optimizer_problem(1003),
                              resample_problem(3, 5, 9),
                              ctc_problem(12, 3, 6, 4)};
  for (const auto& reducer : reducers)
    for (const Lines& lines : {Lines{30, 200, 1}, Lines{2, 50, 40}})
      if (full || reducer.start == 0 || (reducer.start == -HUGE_VAL && lines.inner == 1))
        result.push_back(reduce_problem(lines, reducer));
  if (full) {
    for (const Lines& lines : {Lines{1, 100000, 1}, Lines{5000, 3, 1}, Lines{1, 3, 5000}}) {
      result.push_back(softmax_problem(lines, false));
      for (const auto& reducer : reducers)
        if (reducer.start != 1) result.push_back(reduce_problem(lines, reducer));
      result.push_back(argmax_problem(lines));
      result.push_back(cumsum_problem(lines));
      for (const bool largest : {false, true}) result.push_back(running_problem(lines, largest));
    }
    result.push_back(batch_norm_problem({2, 3, 5000}));
    result.push_back(batch_norm_problem({64, 200, 1}));
    result.push_back(layer_norm_problem(3, 5000));
    result.push_back(layer_norm_problem(1000, 8));
    result.push_back(cross_entropy_problem(3, 5000, false));
    result.push_back(cross_entropy_problem(3, 5000, true));
    result.push_back(index_add_problem(5, 100, 2000));
    result.push_back(transpose_problem({1, 300, 200}, true));
    for (const bool largest : {false, true}) result.push_back(scatter_problem({1, 7, 1}, 3000, largest));
    result.push_back(argsort_problem({1, 3000, 1}));
    result.push_back(optimizer_problem(40000));
    result.push_back(resample_problem(2, 70, 130));
    result.push_back(ctc_problem(80, 2, 30, 35));
  }
  return result;
}

std::vector<Problem> make_plain_problems(bool full) {
  const std::int64_t count = full ? 100003 : 3001;
  std::vector<Problem> result{
      elementwise_problem(
          "functions of any number", {{count}, -6, 6},
          {{[](const Tensor& x) { return exp(x); }, [](double x) { return std::exp(x); }},
           {[](const Tensor& x) { return tanh(x); }, [](double x) { return std::tanh(x); }},
           {[](const Tensor& x) { return sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-x)); }},
           {[](const Tensor& x) { return erf(x); }, [](double x) { return std::erf(x); }},
           {[](const Tensor& x) { return sin(x); }, [](double x) { return std::sin(x); }},
           {[](const Tensor& x) { return gelu(x); }, [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }},
           {[](const Tensor& x) { return x * x / 3.0 - x; }, [](double x) { return x * x / 3 - x; }}}),
      elementwise_problem("functions of positive numbers", {{count}, 0.01, 50},
                          {{[](const Tensor& x) { return log(x); }, [](double x) { return std::log(x); }},
                           {[](const Tensor& x) { return sqrt(x); }, [](double x) { return std::sqrt(x); }},
                           {[](const Tensor& x) { return rsqrt(x); }, [](double x) { return 1 / std::sqrt(x); }},
                           {[](const Tensor& x) { return pow(x, 1.5); }, [](double x) { return std::pow(x, 1.5); }},
                           {[](const Tensor& x) { return reciprocal(x); }, [](double x) { return 1 / x; }}}),
      integer_problem(Dtype::i32, 2e9),
      integer_problem(Dtype::i64, 4e15),
      fused_problem(),
      places_problem()};
  return result;
}

std::vector<Problem> make_problems(bool full) {
  std::vector<Problem> result;
  // Those that take long come first, so that no process is left with one of them at the end.
  for (auto* make : {make_conv2d_problems, make_matmul_problems, make_attention_problems, make_recurrent_problems,
                     make_row_problems, make_pool_problems, make_plain_problems}) {
    auto more = make(full);
    std::move(more.begin(), more.end(), std::back_inserter(result));
  }
  return result;
}

std::vector<Problem> make_timed_problems() {
  std::vector<Problem> result{matmul_problem({384, 384}, {384, 384})};
  for (auto& problem : conv2d_problems({4, 32, 28, 28, 32, 3, {.padding = 1}})) result.push_back(std::move(problem));
  result.push_back(softmax_problem({2000, 500, 1}, false));
  result.push_back(layer_norm_problem(2000, 500));
  result.push_back(batch_norm_problem({16, 32, 784}));
  result.push_back(reduce_problem({2000, 500, 1}, {"sum", [](const Tensor& x, const Dims& d, bool k) { return sum(x, d, k); }, 0,
                                                   [](double a, double b) { return a + b; }}));
  result.push_back(cross_entropy_problem(2000, 500, false));
  result.push_back(transpose_problem({4, 500, 500}, true));
  return result;
}

}  // namespace clnet::tools
