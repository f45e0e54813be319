// Cases of standard deviations, norms and logsumexp.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "tests/cases/case.h"
#include "tests/reference/shape/shape.h"

namespace clnet::testing {

/// A function of the elements along the reduced dimensions, in row order.
inline Array reduce_by(const Array& x, Dims dims, bool keepdim, double (*of)(const std::vector<double>&, double), double p) {
  std::vector<bool> reduced(static_cast<std::size_t>(x.shape.rank()), dims.empty());
  for (int dim : dims) reduced[static_cast<std::size_t>(x.shape.normalize(dim))] = true;
  std::vector<std::int64_t> kept, all;
  for (int d = 0; d < x.shape.rank(); ++d) {
    all.push_back(reduced[static_cast<std::size_t>(d)] ? 1 : x.shape[d]);
    if (keepdim || !reduced[static_cast<std::size_t>(d)]) kept.push_back(all.back());
  }
  std::vector<std::vector<double>> groups(static_cast<std::size_t>(Shape(all).numel()));
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    auto at = coordinates(x.shape, i);
    for (std::size_t d = 0; d < at.size(); ++d)
      if (reduced[d]) at[d] = 0;
    groups[static_cast<std::size_t>(linear_index(Shape(all), at))].push_back(x[i]);
  }
  Array y{Shape(kept)};
  for (std::size_t i = 0; i < groups.size(); ++i) y.values[i] = of(groups[i], p);
  return y;
}

namespace reference {

inline double stddev(const std::vector<double>& values, double correction) {
  const auto n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (double v : values) mean += v / n;
  for (double v : values) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / (n - correction));
}
inline double logsumexp(const std::vector<double>& values, double) {
  double total = 0;
  for (double v : values) total += std::exp(v);
  return std::log(total);
}
inline double norm(const std::vector<double>& values, double p) {
  double total = 0, most = 0, least = HUGE_VAL;
  for (double v : values) {
    total += p == 0 ? double(v != 0) : std::pow(std::fabs(v), p);
    most = std::fmax(most, std::fabs(v));
    least = std::fmin(least, std::fabs(v));
  }
  return std::isinf(p) ? (p > 0 ? most : least) : p == 0 ? total : std::pow(total, 1 / p);
}

}  // namespace reference

inline std::vector<Case> norms_cases() {
  std::vector<Case> cases;
  const auto add = [&](const std::string& name, const Shape& shape, const Dims& dims, bool keepdim, double p, auto run,
                       double (*of)(const std::vector<double>&, double), bool gradient = true) {
    cases.push_back({.name = fmt::format("{} {} of {} over {}{}", name, p, to_string(shape), dims, keepdim ? ", kept" : ""),
                     .inputs = {{shape, -2, 3}},
                     .run = [=](const auto& in) -> std::vector<Tensor> { return {run(in[0])}; },
                     .reference = [=](const auto& in) -> Arrays { return {reduce_by(in[0], dims, keepdim, of, p)}; },
                     .gradient = gradient});
  };
  for (const auto& [shape, dims] :
       {std::pair{Shape{3, 4, 5}, Dims{}}, {Shape{3, 4, 5}, Dims{1}}, {Shape{3, 40}, Dims{-1}}, {Shape{6, 5, 4}, Dims{0, 2}}})
    for (bool keepdim : {false, true}) {
      for (int correction : {0, 1})
        add(
            "stddev", shape, dims, keepdim, correction,
            [=, dims = dims](const Tensor& x) { return stddev(x, dims, correction, keepdim); }, reference::stddev);
      add(
          "logsumexp", shape, dims, keepdim, 0, [=, dims = dims](const Tensor& x) { return logsumexp(x, dims, keepdim); },
          reference::logsumexp);
      for (double p : {0.0, 1.0, 2.0, 3.0, HUGE_VAL, -HUGE_VAL})
        add(
            "norm", shape, dims, keepdim, p, [=, dims = dims](const Tensor& x) { return norm(x, p, dims, keepdim); },
            reference::norm, p != 0);
      // Away from 0, where these are steep.
      for (double p : {-1.0, -2.5})
        cases.push_back(
            {.name = fmt::format("norm {} of {} over {}{}", p, to_string(shape), dims, keepdim ? ", kept" : ""),
             .inputs = {{shape, 0.3, 2}},
             .run = [=, dims = dims](const auto& in) -> std::vector<Tensor> { return {norm(-in[0], p, dims, keepdim)}; },
             .reference = [=, dims = dims](const auto& in) -> Arrays {
               return {reduce_by(in[0], dims, keepdim, reference::norm, p)};
             }});
    }
  return cases;
}

}  // namespace clnet::testing
