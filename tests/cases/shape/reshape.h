#pragma once

#include "tests/cases/case.h"

namespace clnet::testing {

inline std::vector<Case> reshape_cases() {
  const auto make = [](std::string name, Shape from, Shape to, std::function<Tensor(const Tensor&)> call) {
    return Case{.name = std::move(name),
                .inputs = {{from}},
                // The sum makes the view an operand of a kernel.
                .run =
                    [call](const std::vector<Tensor>& in) {
                      return std::vector{call(in[0]), call(in[0]) + call(in[0] * 2.0)};
                    },
                .reference =
                    [to](const Arrays& in) {
                      Array same(to, in[0].values), three(to, in[0].values);
                      for (auto& value : three.values) value *= 3;
                      return Arrays{same, three};
                    }};
  };
  return {
      make("reshape", {2, 3, 4}, {6, 4},
           [](const Tensor& x) {
             return reshape(x, Shape{6, 4});
           }),
      make("reshape with -1", {2, 3, 4}, {4, 6},
           [](const Tensor& x) {
             return reshape(x, {4, -1});
           }),
      make("reshape to a scalar", {1, 1}, {}, [](const Tensor& x) { return reshape(x, Shape{}); }),
      make("flatten", {2, 3, 4, 5}, {2, 60}, [](const Tensor& x) { return flatten(x); }),
      make("flatten the middle", {2, 3, 4, 5}, {2, 12, 5}, [](const Tensor& x) { return flatten(x, 1, -2); }),
      make("flatten a scalar", {}, {1}, [](const Tensor& x) { return flatten(x, 0); }),
      make("squeeze", {2, 1, 3}, {2, 3}, [](const Tensor& x) { return squeeze(x, 1); }),
      make("squeeze a longer dimension", {2, 1, 3}, {2, 1, 3}, [](const Tensor& x) { return squeeze(x, -1); }),
      make("unsqueeze", {2, 3}, {2, 1, 3}, [](const Tensor& x) { return unsqueeze(x, 1); }),
      make("unsqueeze at the end", {2, 3}, {2, 3, 1}, [](const Tensor& x) { return unsqueeze(x, -1); }),
      make("two in a row", {2, 3, 4}, {24}, [](const Tensor& x) { return flatten(unsqueeze(x, 0), 0); }),
  };
}

}  // namespace clnet::testing
