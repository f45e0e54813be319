// Cases of searchsorted, bucketize, isin, bincount and histc.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "tests/cases/meaning.h"
#include "tests/reference/index/lines.h"

namespace clnet::testing {

/// How many elements of a line that ascends come before a value, by counting.
inline double place_in(const std::vector<double>& line, double value, bool right) {
  const auto before = [&](double element) {
    if (std::isnan(element)) return right && std::isnan(value);
    return std::isnan(value) || element < value || (right && element == value);
  };
  return static_cast<double>(std::count_if(line.begin(), line.end(), before));
}

inline std::vector<Case> searchsorted_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Input& line, const Input& values, bool right) {
    const int last = line.shape.rank() - 1;
    cases.push_back({.name = fmt::format("searchsorted of {} {} among {}{}", to_string(line.dtype), to_string(values.shape),
                                         to_string(line.shape), right ? ", right" : ""),
                     .inputs = {line, values},
                     .run =
                         [=](const std::vector<Tensor>& in) {
                           return std::vector{searchsorted(in[0].defined() ? sort(in[0]).values : in[0], in[1], right)};
                         },
                     .reference =
                         [=](const Arrays& in) {
                           const auto lines = reference::lines_of(in[0], last);
                           const auto count = in[1].numel() / static_cast<std::int64_t>(lines.size());
                           Array y(in[1].shape);
                           for (std::int64_t i = 0; i < y.numel(); ++i)
                             y[i] = place_in(lines[static_cast<std::size_t>(i / count)], in[1][i], right);
                           return Arrays{y};
                         }});
  };
  for (bool right : {false, true}) {
    add({{40}}, {{5, 7}}, right);
    add({{3, 17}}, {{3, 6}}, right);
    add({{2, 3, 4}, 0, 5, Dtype::i32}, {{2, 3, 9}, -1, 6, Dtype::i32}, right);
    add({{30}, -4, 4, Dtype::i64}, {{20}, -5, 5, Dtype::i64}, right);
    add({{1}}, {{3}}, right);
  }
  return cases;
}

inline std::vector<Case> bucketize_cases() {
  std::vector<Case> cases;
  for (bool right : {false, true})
    cases.push_back({.name = fmt::format("bucketize{}", right ? ", right" : ""),
                     .inputs = {{{4, 9}}, {{12}}},
                     .run =
                         [=](const std::vector<Tensor>& in) {
                           return std::vector{bucketize(in[0], in[1].defined() ? sort(in[1]).values : in[1], right)};
                         },
                     .reference =
                         [=](const Arrays& in) {
                           Array y = in[0];
                           for (auto& value : y.values) value = place_in(in[1].values, value, right);
                           return Arrays{y};
                         }});
  return cases;
}

inline std::vector<Case> isin_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Input& x, const Input& values, bool invert) {
    cases.push_back({.name = fmt::format("isin of {} {} in {}{}", to_string(x.dtype), to_string(x.shape), to_string(values.shape),
                                         invert ? ", inverted" : ""),
                     .inputs = {x, values},
                     .run = [=](const std::vector<Tensor>& in) { return std::vector{isin(in[0], in[1], invert)}; },
                     .reference =
                         [=](const Arrays& in) {
                           Array y = in[0];
                           for (auto& value : y.values)
                             value = (std::find(in[1].values.begin(), in[1].values.end(), value) != in[1].values.end()) != invert;
                           return Arrays{y};
                         }});
  };
  add({{5, 7}}, {{4}}, false);
  add({{5, 7}, 0, 9, Dtype::i32}, {{2, 2}, -2, 12, Dtype::i32}, false);
  add({{40}, 0, 30, Dtype::i64}, {{12}, 0, 30, Dtype::i64}, true);
  return cases;
}

inline std::vector<Case> bincount_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Input& x, bool weighted, std::int64_t length) {
    Case example{
        .name = fmt::format("bincount of {} {}{} to {}", to_string(x.dtype), to_string(x.shape), weighted ? ", weighted," : "",
                            length),
        .inputs = {x},
        .run =
            [=](const std::vector<Tensor>& in) { return std::vector{bincount(in[0], weighted ? in[1] : Tensor{}, 0, length)}; },
        .reference =
            [=](const Arrays& in) {
              Array y({length});
              for (std::int64_t i = 0; i < in[0].numel(); ++i)
                if (const auto at = static_cast<std::int64_t>(in[0][i]); at >= 0 && at < length) y[at] += weighted ? in[1][i] : 1;
              return Arrays{y};
            }};
    if (weighted) example.inputs.push_back({x.shape});
    cases.push_back(std::move(example));
  };
  add({{50}, 0, 8, Dtype::i64}, true, 9);
  add({{50}, -3, 12, Dtype::i32}, true, 9);
  add({{300}, 0, 8, Dtype::i32}, false, 12);
  add({{0}, 0, 8, Dtype::i64}, false, 3);
  return cases;
}

inline std::vector<Case> histc_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& shape, std::int64_t bins, double low, double high) {
    cases.push_back({.name = fmt::format("histc of {} in {} from {} to {}", to_string(shape), bins, low, high),
                     .inputs = {{shape}},
                     .run = [=](const std::vector<Tensor>& in) { return std::vector{histc(in[0], bins, low, high)}; },
                     .reference =
                         [=](const Arrays& in) {
                           const auto [least, most] = std::minmax_element(in[0].values.begin(), in[0].values.end());
                           const double from = low == high ? *least : low, to = low == high ? *most : high;
                           Array y({bins});
                           for (double value : in[0].values) {
                             if (value < from || value > to) continue;
                             const auto bin = static_cast<std::int64_t>((value - from) * static_cast<double>(bins) / (to - from));
                             y[std::min(bin, bins - 1)] += 1;
                           }
                           return Arrays{y};
                         },
                     .gradient = false});
  };
  add({3, 37}, 7, 0.21, 1.77);
  add({200}, 10, 0, 0);
  add({40}, 1, -1, 1);
  return cases;
}

inline const RegisterCases searchsorted_registered{"searchsorted", searchsorted_cases};
inline const RegisterCases bucketize_registered{"bucketize", bucketize_cases};
inline const RegisterCases isin_registered{"isin", isin_cases};
inline const RegisterCases bincount_registered{"bincount", bincount_cases};
inline const RegisterCases histc_registered{"histc", histc_cases};
inline const RegisterMeaning searchsorted_meaning{"searchsorted",
                                                  {[](const Call& call) {
                                                     const auto &sorted = call.in[0], &values = call.in[1];
                                                     const auto extent = sorted.shape[-1], lines = sorted.numel() / extent;
                                                     const auto count = lines == 1 ? values.numel() : values.shape[-1];
                                                     Array y(call.shape());
                                                     for (std::int64_t i = 0; i < y.numel(); ++i) {
                                                       const auto first =
                                                           sorted.values.begin() + (lines == 1 ? 0 : i / count) * extent;
                                                       y[i] = place_in({first, first + extent}, values[i], call.flag("right"));
                                                     }
                                                     return Arrays{y};
                                                   },
                                                   true}};

}  // namespace clnet::testing
