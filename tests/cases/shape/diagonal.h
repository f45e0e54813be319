// Cases of diagonals and of elements repeated in place.
#pragma once

#include "tests/cases/shape/rearrange.h"

namespace clnet::testing {

inline std::vector<Case> diagonal_cases() {
  std::vector<Case> cases;
  const auto along = [](std::int64_t offset) { return std::pair{offset < 0 ? -offset : 0, offset > 0 ? offset : 0}; };
  for (std::int64_t offset : {-9, -3, -2, 0, 1, 4, 5}) {
    const auto [row, column] = along(offset);
    const auto count = std::max<std::int64_t>(0, std::min(4 - row, 5 - column));
    cases.push_back(arranged(
        fmt::format("diagonal {}", offset), {4, 5}, {count}, [=](const Tensor& t) { return diagonal(t, offset); },
        [=, r = row, c = column](const Coordinates& at) {
          return std::optional(Coordinates{at[0] + r, at[0] + c});
        }));
    if (offset != -9)
      cases.push_back(arranged(
          fmt::format("diag {}", offset), {4}, {4 + row + column, 4 + row + column},
          [=](const Tensor& t) { return diag(t, offset); },
          [=, r = row](const Coordinates& at) {
            return at[1] - at[0] == offset ? std::optional(Coordinates{at[0] - r}) : std::nullopt;
          }));
  }
  cases.push_back(arranged(
      "diagonal of other dimensions", {4, 2, 5}, {2, 4}, [](const Tensor& t) { return diagonal(t, 1, 0, -1); },
      [](const Coordinates& at) {
        return std::optional(Coordinates{at[1], at[0], at[1] + 1});
      }));
  cases.push_back(arranged(
      "diagonal of turned dimensions", {4, 2, 5}, {2, 3}, [](const Tensor& t) { return diagonal(t, 1, 2, 0); },
      [](const Coordinates& at) {
        return std::optional(Coordinates{at[1] + 1, at[0], at[1]});
      }));
  cases.push_back(arranged(
      "diag of a matrix", {3, 4}, {3}, [](const Tensor& t) { return diag(t, 1); },
      [](const Coordinates& at) {
        return std::optional(Coordinates{at[0], at[0] + 1});
      }));
  cases.push_back({.name = "trace",
                   .inputs = {{{5, 3}}},
                   .run = [](const std::vector<Tensor>& in) { return std::vector{trace(in[0])}; },
                   .reference =
                       [](const Arrays& in) {
                         return Arrays{{{}, {in[0][0] + in[0][4] + in[0][8]}}};
                       }});
  for (int dim : {0, 1, -1})
    for (std::int64_t times : {0, 1, 3}) {
      const Shape x{2, 3, 4};
      cases.push_back(arranged(
          fmt::format("repeat_interleave {} along {}", times, dim), x, x.with(dim, x[dim] * times),
          [=](const Tensor& t) { return repeat_interleave(t, times, dim); },
          [=](Coordinates at) {
            at[static_cast<std::size_t>(x.normalize(dim))] /= times;
            return std::optional(at);
          }));
    }
  cases.push_back(arranged(
      "repeat", {2, 3}, {2, 4, 3},
      [](const Tensor& t) {
        return repeat(t, {2, 2, 1});
      },
      [](const Coordinates& at) {
        return std::optional(Coordinates{at[1] % 2, at[2]});
      }));
  return cases;
}

}  // namespace clnet::testing
