// Cases of msort, kthvalue, median, nanmedian, mode, quantile and nanquantile.
#pragma once

#include <fmt/format.h>

#include "tests/reference/index/order.h"
#include "tests/reference/index/sort.h"

namespace clnet::testing {

using ChosenElement = SortResult (*)(const Tensor& x, int dim, bool keepdim);

/// Of an element of each line by a rule.
inline Case chosen_case(const std::string& name, const Input& input, int dim, bool keepdim, ChosenElement function,
                        std::size_t (*rule)(const std::vector<double>&)) {
  return {.name = fmt::format("{} of {} {} along {}{}", name, to_string(input.dtype), to_string(input.shape), dim,
                              keepdim ? ", kept" : ""),
          .inputs = {input},
          .run =
              [=](const std::vector<Tensor>& in) {
                const auto result = function(in[0], dim, keepdim);
                return std::vector{result.values, result.indices};
              },
          .reference =
              [=](const Arrays& in) { return reference::chosen_of_lines(in[0], in[0].shape.normalize(dim), keepdim, rule); }};
}

inline std::vector<Case> chosen_cases(const std::string& name, ChosenElement function,
                                      std::size_t (*rule)(const std::vector<double>&)) {
  std::vector<Case> cases;
  const auto add = [&](const Input& input, int dim, bool keepdim) {
    cases.push_back(chosen_case(name, input, dim, keepdim, function, rule));
  };
  add({{3, 8, 5}}, 1, false);
  add({{3, 7, 5}}, 0, true);
  add({{4, 33}}, -1, false);
  add({{1}}, 0, false);
  add({{6, 20}, 0, 4, Dtype::i32}, 1, false);
  add({{20, 3}, -3, 3, Dtype::i64}, 0, true);
  return cases;
}

/// With NaN where values are low.
inline Case with_nan(Case example) {
  const auto run = example.run;
  const auto expected = example.reference;
  example.name += ", with NaN";
  example.run = [=](const std::vector<Tensor>& in) { return run({where(less(in[0], -0.6), static_cast<double>(NAN), in[0])}); };
  example.reference = [=](const Arrays& in) {
    Array x = in[0];
    for (auto& value : x.values)
      if (value < -0.6) value = NAN;
    return expected({x});
  };
  return example;
}

inline std::vector<Case> median_cases() {
  const auto rule = [](const std::vector<double>& line) { return reference::median(line, false); };
  auto cases = chosen_cases(
      "median", [](const Tensor& x, int dim, bool keepdim) { return median(x, dim, keepdim); }, rule);
  auto some = with_nan(cases[2]);
  some.gradient = false;
  cases.push_back(some);
  return cases;
}

inline std::vector<Case> nanmedian_cases() {
  const auto rule = [](const std::vector<double>& line) { return reference::median(line, true); };
  auto cases = chosen_cases("nanmedian", nanmedian, rule);
  cases.push_back(with_nan(cases[2]));
  return cases;
}

inline std::vector<Case> mode_cases() { return chosen_cases("mode", mode, reference::mode); }

inline std::vector<Case> kthvalue_cases() {
  return chosen_cases(
      "kthvalue",
      [](const Tensor& x, int dim, bool keepdim) {
        return kthvalue(x, x.defined() ? std::min<std::int64_t>(3, x.size(dim)) : 3, dim, keepdim);
      },
      [](const std::vector<double>& line) { return reference::order_of(line)[std::min<std::size_t>(3, line.size()) - 1]; });
}

inline std::vector<Case> msort_cases() {
  std::vector<Case> cases;
  for (const auto& input : {Input{{20, 3}}, Input{{70}}, Input{{30, 2}, 0, 5, Dtype::i32}})
    cases.push_back({.name = fmt::format("msort of {} {}", to_string(input.dtype), to_string(input.shape)),
                     .inputs = {input},
                     .run = [](const std::vector<Tensor>& in) { return std::vector{msort(in[0])}; },
                     .reference =
                         [](const Arrays& in) {
                           return Arrays{reference::ordered(in[0], 0, reference::argsort(in[0], 0, false), in[0].shape[0])};
                         }});
  return cases;
}

inline std::vector<Case> quantile_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& shape, const std::vector<double>& q, int dim, bool keepdim,
                       QuantileInterpolation interpolation) {
    cases.push_back(
        {.name = fmt::format("{} quantiles of {} along {}, interpolation {}", q.size(), to_string(shape), dim,
                             static_cast<int>(interpolation)),
         .inputs = {{shape}},
         .run = [=](const std::vector<Tensor>& in) { return std::vector{quantile(in[0], q, dim, keepdim, interpolation)}; },
         .reference =
             [=](const Arrays& in) {
               Array all{Shape{0}};
               Shape part;
               for (const double each : q) {
                 std::vector<std::vector<double>> lines;
                 for (const auto& line : reference::lines_of(in[0], dim))
                   lines.push_back({reference::quantile(line, each, interpolation, false)});
                 Array one = reference::of_lines(lines, shape, dim);
                 if (!keepdim) one = reference::without(one, dim);
                 part = one.shape;
                 all.values.insert(all.values.end(), one.values.begin(), one.values.end());
               }
               auto extents = part.extents();
               extents.insert(extents.begin(), static_cast<std::int64_t>(q.size()));
               return Arrays{Array(Shape(extents), all.values)};
             }});
  };
  using enum QuantileInterpolation;
  add({3, 8, 5}, {0.1, 0.5, 0.875}, 1, false, linear);
  add({9, 2}, {0, 1}, 0, true, linear);
  add({33}, {0.3}, 0, false, linear);
  // Of a tensor, to which a gradient goes.
  for (const auto& q : {Shape{3}, Shape{}})
    cases.push_back({.name = "quantiles of a tensor " + to_string(q),
                     .inputs = {{{9, 4}}, {q, 0.05, 0.95}},
                     .run = [](const std::vector<Tensor>& in) { return std::vector{quantile(in[0], in[1], 0)}; },
                     .reference =
                         [=](const Arrays& in) {
                           Array y(q.rank() == 0 ? Shape{4} : Shape{3, 4});
                           for (std::int64_t i = 0; i < y.numel(); ++i) {
                             std::vector<double> line;
                             for (std::int64_t k = 0; k < 9; ++k) line.push_back(in[0][k * 4 + i % 4]);
                             std::sort(line.begin(), line.end());
                             const double rank = in[1][i / 4] * 8;
                             const auto below = static_cast<std::size_t>(rank);
                             y[i] = line[below] + (rank - static_cast<double>(below)) * (line[below + 1] - line[below]);
                           }
                           return Arrays{y};
                         },
                     .slack = 4});
  for (auto interpolation : {lower, higher, nearest, midpoint}) add({4, 12}, {0.2, 0.7}, 1, false, interpolation);
  return cases;
}

inline std::vector<Case> nanquantile_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& shape, double q, int dim, QuantileInterpolation interpolation) {
    const Case plain{
        .name =
            fmt::format("nanquantile of {} along {}, interpolation {}", to_string(shape), dim, static_cast<int>(interpolation)),
        .inputs = {{shape}},
        .run = [=](const std::vector<Tensor>& in) { return std::vector{nanquantile(in[0], q, dim, false, interpolation)}; },
        .reference =
            [=](const Arrays& in) {
              std::vector<std::vector<double>> lines;
              for (const auto& line : reference::lines_of(in[0], dim))
                lines.push_back({reference::quantile(line, q, interpolation, true)});
              return Arrays{reference::without(reference::of_lines(lines, shape, dim), dim)};
            }};
    cases.push_back(plain);
    cases.push_back(with_nan(plain));
  };
  using enum QuantileInterpolation;
  add({4, 12}, 0.3, 1, linear);
  add({9, 3}, 0.75, 0, lower);
  return cases;
}

inline const RegisterCases median_registered{"median", median_cases};
inline const RegisterCases nanmedian_registered{"nanmedian", nanmedian_cases};
inline const RegisterCases mode_registered{"mode", mode_cases};
inline const RegisterCases kthvalue_registered{"kthvalue", kthvalue_cases};
inline const RegisterCases msort_registered{"msort", msort_cases};
inline const RegisterCases quantile_registered{"quantile", quantile_cases};
inline const RegisterCases nanquantile_registered{"nanquantile", nanquantile_cases};

}  // namespace clnet::testing
