// Cases of the elementwise operations: each function with its formula in double precision.
#pragma once

#include <cmath>
#include <numbers>

#include "tests/cases/case.h"

namespace clnet::testing {

inline Case unary_case(const std::string& name, Tensor (*function)(const Tensor&), double (*formula)(double), double low = -3,
                       double high = 3, bool gradient = true) {
  return {.name = name,
          .inputs = {{{3, 5, 7}, low, high}},
          .run = [=](const std::vector<Tensor>& in) { return std::vector{function(in[0])}; },
          .reference =
              [=](const Arrays& in) {
                Array out(in[0].shape);
                for (std::int64_t i = 0; i < out.numel(); ++i) out[i] = formula(in[0][i]);
                return Arrays{out};
              },
          .gradient = gradient};
}

/// A reference with broadcasting for any number of inputs.
inline Array broadcast_reference(const Arrays& in, const std::function<double(const std::vector<double>&)>& formula) {
  Shape shape = in[0].shape;
  for (const auto& array : in) shape = broadcast(shape, array.shape, "reference");
  Array out(shape);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    std::vector<double> values;
    for (const auto& array : in) {
      std::int64_t rest = i, index = 0, stride = 1;
      for (int back = 1; back <= shape.rank(); ++back) {
        const auto at = rest % shape[-back];
        rest /= shape[-back];
        if (back <= array.shape.rank() && array.shape[-back] != 1) index += at * stride;
        if (back <= array.shape.rank()) stride *= array.shape[-back];
      }
      values.push_back(array[index]);
    }
    out[i] = formula(values);
  }
  return out;
}

inline Case binary_case(const std::string& name, const std::vector<Input>& inputs,
                        Tensor (*function)(const Tensor&, const Tensor&), double (*formula)(double, double),
                        bool gradient = true) {
  return {.name = name,
          .inputs = inputs,
          .run = [=](const std::vector<Tensor>& in) { return std::vector{function(in[0], in[1])}; },
          .reference =
              [=](const Arrays& in) {
                return Arrays{broadcast_reference(in, [=](const std::vector<double>& v) { return formula(v[0], v[1]); })};
              },
          .gradient = gradient};
}

inline std::vector<Case> unary_cases() {
  const auto sigma = [](double x) { return 1 / (1 + std::exp(-x)); };
  static const auto sigmoid_formula = sigma;
  return {
      unary_case(
          "hardshrink", [](const Tensor& x) { return hardshrink(x, 0.75); },
          [](double x) { return std::abs(x) > 0.75 ? x : 0.0; }),
      unary_case(
          "softshrink", [](const Tensor& x) { return softshrink(x, 0.75); },
          [](double x) { return x > 0.75    ? x - 0.75
                                : x < -0.75 ? x + 0.75
                                            : 0.0; }),
      unary_case(
          "threshold", [](const Tensor& x) { return threshold(x, 0.25, -7); }, [](double x) { return x > 0.25 ? x : -7.0; }),
      unary_case(
          "nan_to_num", [](const Tensor& x) { return nan_to_num(x); }, [](double x) { return x; }),
      unary_case(
          "sigmoid far out", sigmoid, [](double x) { return sigmoid_formula(x); }, -90, 90),
      unary_case(
          "relu6", relu6, [](double x) { return std::min(std::max(x, 0.0), 6.0); }, -8, 8),
      unary_case(
          "leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.2); }, [](double x) { return x > 0 ? x : 0.2 * x; }),
      unary_case(
          "elu", [](const Tensor& x) { return elu(x, 1.5); }, [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); }),
      unary_case(
          "celu", [](const Tensor& x) { return celu(x, 0.7); }, [](double x) { return x > 0 ? x : 0.7 * std::expm1(x / 0.7); }),
      unary_case(
          "gelu", [](const Tensor& x) { return gelu(x); },
          [](double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); }),
      unary_case(
          "gelu tanh", [](const Tensor& x) { return gelu(x, Gelu::tanh); },
          [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }),
      unary_case(
          "hardswish", hardswish, [](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; }, -5, 5),
      unary_case(
          "hardsigmoid", hardsigmoid, [](double x) { return std::min(std::max(x + 3, 0.0), 6.0) / 6; }, -5, 5),
      unary_case(
          "hardtanh", [](const Tensor& x) { return hardtanh(x, -2, 1); },
          [](double x) { return std::min(std::max(x, -2.0), 1.0); }),
      unary_case(
          "softplus", [](const Tensor& x) { return softplus(x, 2, 5); },
          [](double x) { return 2 * x > 5 ? x : std::log1p(std::exp(2 * x)) / 2; }, -4, 4),
      unary_case(
          "clamp", [](const Tensor& x) { return clamp(x, -1, 2); }, [](double x) { return std::min(std::max(x, -1.0), 2.0); }),
      unary_case(
          "with a number", [](const Tensor& x) { return (3.0 - x * 2.0) / 4.0 + 1.0; },
          [](double x) { return (3 - x * 2) / 4 + 1; }),
  };
}

inline std::vector<Case> binary_cases() {
  const Input full{{3, 4, 5}}, other{{3, 4, 5}, 0.5, 2};
  std::vector<Case> cases{
      binary_case("atan2", {full, full}, atan2, [](double a, double b) { return std::atan2(a, b); }),
      binary_case("xlogy", {full, other}, xlogy, [](double a, double b) { return a * std::log(b); }),
  };
  // Every way two shapes can be broadcast: rows, columns, scalars, middles, both sides at once, long rows, many dimensions.
  const std::vector<std::pair<Shape, Shape>> shapes{{{4, 5}, {5}},
                                                    {{4, 1}, {1, 5}},
                                                    {{3, 4, 5}, {}},
                                                    {{2, 3, 4, 5}, {1, 3, 1, 1}},
                                                    {{2, 3, 8, 20}, {3, 1, 1}},
                                                    {{3, 1, 5}, {1, 4, 1}},
                                                    {{2, 100}, {2, 1}},
                                                    {{3, 2, 130}, {2, 1}},
                                                    {{2, 1, 3, 1, 2, 1}, {1, 4, 1, 2, 1, 3}},
                                                    {{2, 3, 2, 2, 70}, {3, 1, 2, 1}},
                                                    {{1, 1}, {1}},
                                                    {{0, 3}, {3}}};
  for (const bool divides : {false, true})
    cases.push_back({.name = divides ? "addcdiv" : "addcmul",
                     .inputs = {{{3, 4, 5}}, {{4, 1}, -1, 2}, {{3, 1, 5}, 0.5, 2}},
                     .run =
                         [=](const std::vector<Tensor>& in) {
                           return std::vector{divides ? addcdiv(in[0], in[1], in[2], -0.7) : addcmul(in[0], in[1], in[2], -0.7)};
                         },
                     .reference =
                         [=](const Arrays& in) {
                           return Arrays{broadcast_reference(in, [=](const std::vector<double>& v) {
                             return v[0] - 0.7 * (divides ? v[1] / v[2] : v[1] * v[2]);
                           })};
                         }});
  for (const auto& [a, b] : shapes) {
    auto example = binary_case(
        "mul " + to_string(a) + " " + to_string(b), {{a}, {b}}, [](const Tensor& x, const Tensor& y) { return x * y; },
        [](double x, double y) { return x * y; });
    example.all_dtypes = false;
    cases.push_back(std::move(example));
  }
  return cases;
}

inline std::vector<Case> choice_cases() {
  const Input small{{40}, -2, 2, Dtype::i32}, row{{7, 1, 1}, -2, 2, Dtype::i64}, column{{1, 5, 1}, -2, 2, Dtype::i64};
  return {
      binary_case(
          "integer mul", {row, column}, [](const Tensor& a, const Tensor& b) { return a * b; },
          [](double a, double b) { return a * b; }, false),
      {.name = "where",
       .inputs = {{{4, 1}, 0, 1, Dtype::boolean}, {{4, 5}}, {{5}}},
       .run = [](const std::vector<Tensor>& in) { return std::vector{where(in[0], in[1], in[2])}; },
       .reference =
           [](const Arrays& in) {
             return Arrays{broadcast_reference(in, [](const std::vector<double>& v) { return v[0] != 0 ? v[1] : v[2]; })};
           }},
  };
}

}  // namespace clnet::testing
