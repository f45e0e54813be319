#pragma once

#include <limits>

#include "tests/cases/case.h"
#include "tests/reference/shape/shape.h"

namespace clnet::testing {

/// The value at an index that may count from the end; NaN where it is out of range.
inline double picked(const Array& x, Coordinates at, int dim, double index) {
  auto i = static_cast<std::int64_t>(index);
  if (i < 0) i += x.shape[dim];
  if (i < 0 || i >= x.shape[dim]) return std::numeric_limits<double>::quiet_NaN();
  at[static_cast<std::size_t>(dim)] = i;
  return x[linear_index(x.shape, at)];
}

inline Array index_select_reference(const Array& x, int dim, const Array& indices) {
  auto extents = x.shape.extents();
  extents.erase(extents.begin() + dim);
  extents.insert(extents.begin() + dim, indices.shape.begin(), indices.shape.end());
  return make_array(Shape(extents), [&](Coordinates at) {
    const auto first = at.begin() + dim, last = first + indices.shape.rank();
    const double index = indices[linear_index(indices.shape, Coordinates(first, last))];
    const auto place = at.erase(first, last);
    at.insert(place, 0);
    return picked(x, at, dim, index);
  });
}

inline std::vector<Case> index_select_cases() {
  const auto select = [](std::string name, Shape x, int dim, Input indices) {
    return Case{.name = "index_select " + name,
                .inputs = {{x}, indices},
                .run = [dim](const std::vector<Tensor>& in) { return std::vector{index_select(in[0], dim, in[1])}; },
                .reference = [dim](const Arrays& in) { return Arrays{index_select_reference(in[0], dim, in[1])}; }};
  };
  const auto pick = [](std::string name, Shape x, int dim, Input indices) {
    return Case{.name = "gather " + name,
                .inputs = {{x}, indices},
                .run = [dim](const std::vector<Tensor>& in) { return std::vector{gather(in[0], dim, in[1])}; },
                .reference =
                    [dim](const Arrays& in) {
                      return Arrays{make_array(in[1].shape, [&](const Coordinates& at) {
                        return picked(in[0], at, dim, in[1][linear_index(in[1].shape, at)]);
                      })};
                    }};
  };
  auto cases = std::vector{
      select("rows", {7, 5}, 0, {{4}, 0, 6, Dtype::i64}),
      select("rows, many times", {3, 5}, 0, {{40}, 0, 2, Dtype::i32}),
      select("the middle, from the end too", {2, 6, 5}, 1, {{4}, -6, 5, Dtype::i64}),
      select("the last dimension by a matrix", {2, 6}, 1, {{3, 4}, 0, 5, Dtype::i32}),
      select("by a scalar", {2, 6, 3}, 1, {{}, 0, 5, Dtype::i32}),
      select("by nothing", {2, 6, 3}, 1, {{0}, 0, 5, Dtype::i32}),
      select("many rows", {500, 3}, 0, {{100}, 0, 499, Dtype::i64}),
      pick("along 0", {5, 4}, 0, {{3, 4}, 0, 4, Dtype::i64}),
      pick("along 1", {3, 5}, 1, {{3, 4}, 0, 4, Dtype::i64}),
      pick("one class of each row", {9, 10}, 1, {{9, 1}, 0, 9, Dtype::i32}),
      pick("the middle, from the end too", {2, 5, 3}, 1, {{2, 8, 3}, -5, 4, Dtype::i32}),
      pick("fewer places", {4, 5, 3}, 1, {{2, 6, 2}, 0, 4, Dtype::i32}),
  };
  cases.push_back({.name = "embedding",
                   .inputs = {{{2, 4}, 0, 10, Dtype::i64}, {{11, 6}}},
                   .run = [](const std::vector<Tensor>& in) { return std::vector{embedding(in[0], in[1])}; },
                   .reference = [](const Arrays& in) { return Arrays{index_select_reference(in[1], 0, in[0])}; }});
  cases.push_back({.name = "embedding with a padding index",
                   .inputs = {{{2, 40}, -11, 10, Dtype::i64}, {{11, 6}}},
                   .run = [](const std::vector<Tensor>& in) { return std::vector{embedding(in[0], in[1], 3)}; },
                   .reference = [](const Arrays& in) { return Arrays{index_select_reference(in[1], 0, in[0])}; },
                   .gradient = false});
  return cases;
}

}  // namespace clnet::testing
