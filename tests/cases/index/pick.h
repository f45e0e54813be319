// Cases of take, take_along_dim, gather_nd, scatter_nd, index_fill and index_copy.
#pragma once

#include <fmt/format.h>

#include "tests/cases/index/index_select.h"
#include "tests/reference/index/pick.h"

namespace clnet::testing {

inline std::vector<Case> take_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& x, const Input& indices) {
    cases.push_back({.name = fmt::format("take of {} by {}", to_string(x), to_string(indices.shape)),
                     .inputs = {{x}, indices},
                     .run = [](const std::vector<Tensor>& in) { return std::vector{take(in[0], in[1])}; },
                     .reference =
                         [](const Arrays& in) {
                           const Array line({in[0].numel()}, in[0].values);
                           return Arrays{index_select_reference(line, 0, in[1])};
                         }});
  };
  add({3, 5}, {{4, 2}, -15, 14, Dtype::i64});
  add({7}, {{40}, 0, 6, Dtype::i32});
  add({2, 3, 2}, {{}, 0, 11, Dtype::i32});
  return cases;
}

inline std::vector<Case> take_along_dim_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& x, int dim, const Input& indices, const Shape& result) {
    cases.push_back({.name = fmt::format("take_along_dim of {} by {} along {}", to_string(x), to_string(indices.shape), dim),
                     .inputs = {{x}, indices},
                     .run = [dim](const std::vector<Tensor>& in) { return std::vector{take_along_dim(in[0], in[1], dim)}; },
                     .reference =
                         [=](const Arrays& in) {
                           return Arrays{make_array(result, [&](const Coordinates& at) {
                             const auto held = [&](const Shape& shape) {
                               auto own = at;
                               for (std::size_t d = 0; d < own.size(); ++d)
                                 if (shape[static_cast<int>(d)] == 1 && static_cast<int>(d) != dim) own[d] = 0;
                               return own;
                             };
                             return picked(in[0], held(in[0].shape), dim, in[1][linear_index(in[1].shape, held(in[1].shape))]);
                           })};
                         }});
  };
  add({3, 5}, 1, {{3, 4}, -5, 4, Dtype::i64}, {3, 4});
  add({1, 5, 2}, 1, {{4, 3, 1}, 0, 4, Dtype::i32}, {4, 3, 2});
  add({4, 3}, 0, {{2, 1}, 0, 3, Dtype::i32}, {2, 3});
  return cases;
}

inline std::vector<Case> gather_nd_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& x, const Input& indices, int batch_dims) {
    cases.push_back({.name = fmt::format("gather_nd of {} by {}, batch {}", to_string(x), to_string(indices.shape), batch_dims),
                     .inputs = {{x}, indices},
                     .run = [=](const std::vector<Tensor>& in) { return std::vector{gather_nd(in[0], in[1], batch_dims)}; },
                     .reference = [=](const Arrays& in) { return Arrays{reference::gather_nd(in[0], in[1], batch_dims)}; }});
  };
  add({4, 3, 5}, {{6, 2}, -3, 2, Dtype::i64}, 0);
  add({4, 3}, {{2, 3, 2}, 0, 2, Dtype::i32}, 0);
  add({4, 3, 2}, {{5, 1}, 0, 3, Dtype::i64}, 0);
  add({2, 4, 3}, {{2, 5, 1}, -4, 3, Dtype::i32}, 1);
  add({2, 3, 4, 5}, {{2, 3, 2}, 0, 3, Dtype::i64}, 2);
  return cases;
}

inline std::vector<Case> scatter_nd_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& x, const Input& indices, const Shape& source, std::optional<ScatterReduction> reduction,
                       double (*combine)(double, double)) {
    cases.push_back(
        {.name = fmt::format("scatter_nd to {} by {}, reduction {}", to_string(x), to_string(indices.shape),
                             reduction ? static_cast<int>(*reduction) : -1),
         .inputs = {{x, 0.5, 2}, indices, {source, 0.5, 2}},
         .run = [=](const std::vector<Tensor>& in) { return std::vector{scatter_nd(in[0], in[1], in[2], reduction)}; },
         .reference = [=](const Arrays& in) { return Arrays{reference::scatter_nd(in[0], in[1], in[2], combine)}; },
         .slack = 4});
  };
  const auto last = [](double, double b) { return b; };
  const auto sum = [](double a, double b) { return a + b; };
  add({4, 3, 5}, {{6, 2}, -4, 3, Dtype::i64}, {6, 5}, std::nullopt, last);  // some out of range
  add({4, 3}, {{2, 3, 2}, 0, 2, Dtype::i32}, {2, 3}, std::nullopt, last);
  add({4, 3}, {{5, 1}, 0, 3, Dtype::i64}, {5, 3}, ScatterReduction::sum, sum);
  add({4, 3}, {{5, 1}, 0, 3, Dtype::i64}, {5, 3}, ScatterReduction::prod, [](double a, double b) { return a * b; });
  add({4, 3}, {{7, 2}, 0, 2, Dtype::i32}, {7}, ScatterReduction::amax, [](double a, double b) { return std::max(a, b); });
  add({4, 3}, {{7, 2}, 0, 2, Dtype::i32}, {7}, ScatterReduction::amin, [](double a, double b) { return std::min(a, b); });
  return cases;
}

inline std::vector<Case> index_fill_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& x, int dim, const Input& indices) {
    cases.push_back({.name = fmt::format("index_fill of {} by {} along {}", to_string(x), to_string(indices.shape), dim),
                     .inputs = {{x}, indices},
                     .run = [=](const std::vector<Tensor>& in) { return std::vector{index_fill(in[0], dim, in[1], 1)}; },
                     .reference =
                         [=](const Arrays& in) {
                           Array y = in[0];
                           reference::each_named(x, dim, in[1], [&](auto to, auto) { y[to] = 1; });
                           return Arrays{y};
                         }});
  };
  add({3, 5}, 1, {{3}, -5, 4, Dtype::i64});
  add({6, 2, 3}, 0, {{4}, -8, 8, Dtype::i32});
  add({2, 6, 3}, 1, {{}, 0, 5, Dtype::i32});
  add({2, 6}, 1, {{0}, 0, 5, Dtype::i64});
  return cases;
}

inline std::vector<Case> index_copy_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Shape& x, int dim, const Input& indices) {
    cases.push_back({.name = fmt::format("index_copy to {} by {} along {}", to_string(x), to_string(indices.shape), dim),
                     .inputs = {{x}, indices, {x.with(dim, indices.shape.numel())}},
                     .run = [=](const std::vector<Tensor>& in) { return std::vector{index_copy(in[0], dim, in[1], in[2])}; },
                     .reference =
                         [=](const Arrays& in) {
                           Array y = in[0];
                           reference::each_named(x, dim, in[1], [&](auto to, auto from) { y[to] = in[2][from]; });
                           return Arrays{y};
                         }});
  };
  add({3, 5}, 1, {{3}, -5, 4, Dtype::i64});
  add({6, 2, 3}, 0, {{9}, -8, 8, Dtype::i32});
  add({2, 6, 3}, 1, {{4}, 0, 5, Dtype::i32});
  add({2, 6}, 1, {{0}, 0, 5, Dtype::i64});
  return cases;
}

inline const RegisterCases take_registered{"take", take_cases};
inline const RegisterCases take_along_dim_registered{"take_along_dim", take_along_dim_cases};
inline const RegisterCases gather_nd_registered{"gather_nd", gather_nd_cases};
inline const RegisterCases scatter_nd_registered{"scatter_nd", scatter_nd_cases};
inline const RegisterCases index_fill_registered{"index_fill", index_fill_cases};
inline const RegisterCases index_copy_registered{"index_copy", index_copy_cases};

}  // namespace clnet::testing
