#pragma once

#include "tests/cases/case.h"
#include "tests/reference/shape/shape.h"

namespace clnet::testing {

inline std::vector<Case> concat_cases() {
  const auto make = [](std::string name, std::vector<Shape> shapes, int dim) {
    std::vector<Input> inputs;
    for (const auto& shape : shapes) inputs.push_back({shape});
    return Case{.name = "concat " + name,
                .inputs = inputs,
                .run = [dim](const std::vector<Tensor>& in) { return std::vector{concat(in, dim)}; },
                .reference =
                    [dim](const Arrays& in) {
                      std::int64_t extent = 0;
                      for (const auto& x : in) extent += x.shape[dim];
                      return Arrays{make_array(in[0].shape.with(dim, extent), [&](Coordinates at) {
                        auto& place = at[static_cast<std::size_t>(in[0].shape.normalize(dim))];
                        std::size_t k = 0;
                        while (place >= in[k].shape[dim]) place -= in[k++].shape[dim];
                        return in[k][linear_index(in[k].shape, at)];
                      })};
                    }};
  };
  auto cases = std::vector{make("rows", {{2, 3}, {4, 3}}, 0),
                           make("columns", {{2, 3}, {2, 1}, {2, 5}}, 1),
                           make("channels", {{2, 3, 5, 7}, {2, 8, 5, 7}}, 1),
                           make("the last dimension", {{2, 3, 4}, {2, 3, 70}}, -1),
                           make("with an empty one", {{2, 3}, {0, 3}, {1, 3}}, 0),
                           make("only one", {{2, 3}}, 0)};
  cases.push_back({.name = "the same tensor twice",
                   .inputs = {{{2, 3}}},
                   .run =
                       [](const std::vector<Tensor>& in) {
                         return std::vector{concat({in[0], in[0]}, 0)};
                       },
                   .reference =
                       [](const Arrays& in) {
                         auto values = in[0].values;
                         values.insert(values.end(), in[0].values.begin(), in[0].values.end());
                         return Arrays{{{4, 3}, values}};
                       }});
  for (int dim : {0, 1, 2, -1})
    cases.push_back({.name = "stack at " + std::to_string(dim),
                     .inputs = {{{2, 3}}, {{2, 3}}},
                     .run = [dim](const std::vector<Tensor>& in) { return std::vector{stack(in, dim)}; },
                     .reference =
                         [dim](const Arrays& in) {
                           const auto at_dim = static_cast<std::size_t>(dim < 0 ? dim + 3 : dim);
                           auto extents = in[0].shape.extents();
                           extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(at_dim), 2);
                           return Arrays{make_array(Shape(extents), [&](Coordinates at) {
                             const auto k = static_cast<std::size_t>(at[at_dim]);
                             at.erase(at.begin() + static_cast<std::ptrdiff_t>(at_dim));
                             return in[k][linear_index(in[k].shape, at)];
                           })};
                         }});
  cases.push_back({.name = "split",
                   .inputs = {{{2, 7, 3}}},
                   .run =
                       [](const std::vector<Tensor>& in) {
                         return split(in[0], {2, 0, 4, 1}, 1);
                       },
                   .reference =
                       [](const Arrays& in) {
                         Arrays pieces;
                         std::int64_t start = 0;
                         for (std::int64_t length : {2, 0, 4, 1}) {
                           pieces.push_back(make_array({2, length, 3}, [&](const Coordinates& at) {
                             return in[0].at({at[0], at[1] + start, at[2]});
                           }));
                           start += length;
                         }
                         return pieces;
                       }});
  return cases;
}

}  // namespace clnet::testing
