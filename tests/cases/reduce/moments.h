// Cases of reductions in pairs, counts, sums without NaN, differences, and distances.
#pragma once

#include "tests/cases/elementwise/elementwise.h"
#include "tests/cases/reduce/norms.h"
#include "tests/reference/loss/losses.h"
#include "tests/reference/reduce/reduce.h"

namespace clnet::testing {

inline Case reduced_pair(const std::string& name, std::vector<Tensor> (*run)(const Tensor&), Arrays (*reference)(const Array&)) {
  return {.name = name,
          .inputs = {{{3, 5, 4}, -2, 3}},
          .run = [=](const std::vector<Tensor>& in) { return run(in[0]); },
          .reference = [=](const Arrays& in) { return reference(in[0]); }};
}

inline std::vector<Case> var_mean_cases() {
  return {reduced_pair(
      "var_mean",
      [](const Tensor& x) {
        const auto both = var_mean(x, {1}, 0, true);
        return std::vector{both.var, both.mean};
      },
      [](const Array& x) {
        return Arrays{reference::var(x, {1}, 0, true), reference::mean(x, {1}, true)};
      })};
}
inline std::vector<Case> std_mean_cases() {
  return {reduced_pair(
      "std_mean",
      [](const Tensor& x) {
        const auto both = std_mean(x, {0, 2});
        return std::vector{both.stddev, both.mean};
      },
      [](const Array& x) {
        return Arrays{reduce_by(x, {0, 2}, false, reference::stddev, 1), reference::mean(x, {0, 2}, false)};
      })};
}
inline std::vector<Case> aminmax_cases() {
  return {reduced_pair(
      "aminmax",
      [](const Tensor& x) {
        const auto both = x.aminmax({1});
        return std::vector{both.min, both.max};
      },
      [](const Array& x) {
        return Arrays{reference::min(x, {1}, false), reference::max(x, {1}, false)};
      })};
}

inline std::vector<Case> count_nonzero_cases() {
  const auto count = [](const std::vector<double>& values, double) {
    double result = 0;
    for (double value : values) result += value != 0 ? 1 : 0;
    return result;
  };
  Case of_integers{.name = "count_nonzero of integers",
                   .inputs = {{{4, 9}, -1, 1, Dtype::i32}},
                   .run = [](const std::vector<Tensor>& in) { return std::vector{count_nonzero(in[0], {1})}; },
                   .reference = [=](const Arrays& in) { return Arrays{reduce_by(in[0], {1}, false, count, 0)}; },
                   .gradient = false};
  Case first = of_integers;
  first.name = "count_nonzero";
  first.inputs = {{{4, 9}}};
  return {first, of_integers};
}

inline std::vector<Case> nansum_cases() {
  return {reduced_pair(
      "nansum", [](const Tensor& x) { return std::vector{nansum(x, {1})}; },
      [](const Array& x) { return Arrays{reference::sum(x, {1}, false)}; })};
}
inline std::vector<Case> nanmean_cases() {
  return {reduced_pair(
      "nanmean", [](const Tensor& x) { return std::vector{nanmean(x, {1})}; },
      [](const Array& x) { return Arrays{reference::mean(x, {1}, false)}; })};
}

inline std::vector<Case> diff_cases() {
  return {reduced_pair(
              "diff", [](const Tensor& x) { return std::vector{diff(x)}; },
              [](const Array& x) {
                return Arrays{make_array({3, 5, 3}, [&](const Coordinates& at) {
                  return x.at({at[0], at[1], at[2] + 1}) - x.at({at[0], at[1], at[2]});
                })};
              }),
          reduced_pair(
              "diff twice", [](const Tensor& x) { return std::vector{diff(x, 2, 1)}; },
              [](const Array& x) {
                return Arrays{make_array({3, 3, 4}, [&](const Coordinates& at) {
                  return x.at({at[0], at[1] + 2, at[2]}) - 2 * x.at({at[0], at[1] + 1, at[2]}) + x.at({at[0], at[1], at[2]});
                })};
              })};
}

inline Case of_two(const std::string& name, const Shape& a, const Shape& b, Tensor (*run)(const Tensor&, const Tensor&),
                   std::function<Array(const Array&, const Array&)> reference) {
  return {.name = name,
          .inputs = {{a}, {b, 1.5, 3}},
          .run = [=](const std::vector<Tensor>& in) { return std::vector{run(in[0], in[1])}; },
          .reference = [=](const Arrays& in) { return Arrays{reference(in[0], in[1])}; }};
}

/// The norms of all differences of rows of {..., M, K} and {..., N, K} with the same leading dimensions.
inline Array distances_of_rows(const Array& a, const Array& b, double p) {
  const auto m = a.size(-2), n = b.size(-2), k = a.size(-1);
  Array y(a.shape.with(-1, n));
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    const auto row = i / n, other = row / m * n + i % n;
    for (std::int64_t j = 0; j < k; ++j) y[i] += std::pow(std::fabs(a[row * k + j] - b[other * k + j]), p);
    y[i] = std::pow(y[i], 1 / p);
  }
  return y;
}

inline std::vector<Case> distance_cases() {
  using T = const Tensor&;
  const auto reference = [](double p) {
    return [=](const Array& a, const Array& b) {
      const auto difference = broadcast_reference({a, b}, [](const std::vector<double>& v) { return v[0] - v[1]; });
      return reduce_by(difference, {}, false, reference::norm, p);
    };
  };
  return {of_two(
              "distance", {3, 4}, {4}, [](T a, T b) { return distance(a, b); }, reference(2)),
          of_two(
              "distance of sums", {3, 4}, {3, 4}, [](T a, T b) { return distance(a, b, 1); }, reference(1))};
}
inline std::vector<Case> cdist_cases() {
  using T = const Tensor&;
  return {of_two(
              "cdist", {5, 4}, {3, 4}, [](T a, T b) { return cdist(a, b); },
              [](const Array& a, const Array& b) { return distances_of_rows(a, b, 2); }),
          of_two(
              "cdist of batches", {2, 5, 4}, {2, 3, 4}, [](T a, T b) { return cdist(a, b, 3); },
              [](const Array& a, const Array& b) { return distances_of_rows(a, b, 3); })};
}
inline std::vector<Case> cosine_similarity_cases() {
  using T = const Tensor&;
  return {of_two(
      "cosine_similarity", {6, 10}, {6, 10}, [](T a, T b) { return cosine_similarity(a, b); }, reference::cosines)};
}
inline std::vector<Case> pairwise_distance_cases() {
  using T = const Tensor&;
  return {of_two(
      "pairwise_distance", {6, 10}, {6, 10}, [](T a, T b) { return pairwise_distance(a, b); },
      [](const Array& a, const Array& b) { return reference::distances(a, b, 2, 1e-6); })};
}
inline std::vector<Case> normalize_cases() {
  std::vector<Case> cases;
  for (int dim : {1, 0})
    cases.push_back(
        {.name = "normalize along " + std::to_string(dim),
         .inputs = {{{4, 7}, 0.2, 2}},
         .run = [=](const std::vector<Tensor>& in) { return std::vector{normalize(in[0], 2, dim)}; },
         .reference =
             [=](const Arrays& in) {
               const auto norms = reduce_by(in[0], {dim}, true, reference::norm, 2);
               return Arrays{broadcast_reference({in[0], norms}, [](const std::vector<double>& v) { return v[0] / v[1]; })};
             }});
  return cases;
}

inline const RegisterCases moments_registered[] = {{"var_mean", var_mean_cases},
                                                   {"std_mean", std_mean_cases},
                                                   {"aminmax", aminmax_cases},
                                                   {"count_nonzero", count_nonzero_cases},
                                                   {"nansum", nansum_cases},
                                                   {"nanmean", nanmean_cases},
                                                   {"diff", diff_cases},
                                                   {"distance", distance_cases},
                                                   {"cdist", cdist_cases},
                                                   {"cosine_similarity", cosine_similarity_cases},
                                                   {"pairwise_distance", pairwise_distance_cases},
                                                   {"normalize", normalize_cases}};

}  // namespace clnet::testing
