// Cases of the arrangements that views, copies and choices make up.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "tests/cases/case.h"
#include "tests/reference/shape/shape.h"

namespace clnet::testing {

/// y = f(x): where each element of y comes from; nothing: 0.
inline Case arranged(const std::string& name, const Shape& from, const Shape& to, std::function<Tensor(const Tensor&)> run,
                     std::function<std::optional<Coordinates>(const Coordinates&)> source) {
  return {.name = name,
          .inputs = {{from}},
          .run = [=](const auto& in) -> std::vector<Tensor> { return {run(in[0])}; },
          .reference = [=](const auto& in) -> Arrays {
            return {make_array(to, [&](const Coordinates& at) {
              const auto place = source(at);
              return place ? in[0][linear_index(from, *place)] : 0;
            })};
          }};
}

inline std::vector<Case> rearrange_cases() {
  std::vector<Case> cases;
  const Shape x{3, 4, 5};
  for (const auto& dims : {Dims{0}, Dims{-1}, Dims{0, 1, 2}, Dims{2, 0}, Dims{}})
    cases.push_back(arranged(
        fmt::format("flip {}", dims), x, x, [=](const Tensor& t) { return flip(t, dims); },
        [=](Coordinates at) {
          for (int dim : dims) {
            const auto d = static_cast<std::size_t>(x.normalize(dim));
            at[d] = x[static_cast<int>(d)] - 1 - at[d];
          }
          return std::optional(at);
        }));
  for (const auto& [shifts, dims] :
       {std::pair{std::vector<std::int64_t>{1}, Dims{0}}, {{-2}, {2}}, {{7, -9}, {1, 2}}, {{0}, {1}}, {{1, 1}, {2, 2}}})
    cases.push_back(arranged(
        fmt::format("roll {} along {}", shifts, dims), x, x, [s = shifts, d = dims](const Tensor& t) { return roll(t, s, d); },
        [=, shifts = shifts, dims = dims](Coordinates at) {
          for (std::size_t i = 0; i < dims.size(); ++i) {
            const auto d = static_cast<std::size_t>(dims[i]);
            const auto extent = x[dims[i]];
            at[d] = ((at[d] - shifts[i]) % extent + extent) % extent;
          }
          return std::optional(at);
        }));
  for (const auto& repeats : std::vector<std::vector<std::int64_t>>{{2, 1, 3}, {2}, {2, 1, 1, 3}, {1, 0, 2}, {}}) {
    const auto rank = std::max<std::size_t>(repeats.size(), 3);
    std::vector<std::int64_t> extents(rank, 1);
    for (std::size_t d = 0; d < 3; ++d) extents[rank - 1 - d] = x[static_cast<int>(2 - d)];
    for (std::size_t d = 0; d < repeats.size(); ++d) extents[rank - 1 - d] *= repeats[repeats.size() - 1 - d];
    cases.push_back(arranged(
        fmt::format("tile {}", repeats), x, Shape(extents), [=](const Tensor& t) { return tile(t, repeats); },
        [=](const Coordinates& at) {
          Coordinates from(at.end() - 3, at.end());
          for (std::size_t d = 0; d < 3; ++d) from[d] %= x[static_cast<int>(d)];
          return std::optional(from);
        }));
  }
  for (std::int64_t diagonal : {-5, -1, 0, 2, 9})
    for (bool lower : {true, false})
      cases.push_back(arranged(
          fmt::format("{} {}", lower ? "tril" : "triu", diagonal), x, x,
          [=](const Tensor& t) { return lower ? tril(t, diagonal) : triu(t, diagonal); },
          [=](const Coordinates& at) {
            const auto offset = at[2] - at[1];
            return (lower ? offset <= diagonal : offset >= diagonal) ? std::optional(at) : std::nullopt;
          }));
  for (std::int64_t r : {1, 2, 3}) {
    const Shape deep{2, 2 * r * r, 3, 4}, wide{2, 2, 3 * r, 4 * r};
    cases.push_back(arranged(
        fmt::format("pixel_shuffle {}", r), deep, wide, [=](const Tensor& t) { return pixel_shuffle(t, r); },
        [=](const Coordinates& at) {
          return std::optional(Coordinates{at[0], at[1] * r * r + at[2] % r * r + at[3] % r, at[2] / r, at[3] / r});
        }));
    cases.push_back(arranged(
        fmt::format("pixel_unshuffle {}", r), wide, deep, [=](const Tensor& t) { return pixel_unshuffle(t, r); },
        [=](const Coordinates& at) {
          const auto part = at[1] % (r * r);
          return std::optional(Coordinates{at[0], at[1] / (r * r), at[2] * r + part / r, at[3] * r + part % r});
        }));
  }
  return cases;
}

}  // namespace clnet::testing
