// The catalogue's elementwise functions of one or two tensors, each with the formula of its name, and their cases.
#pragma once

#include <algorithm>
#include <cmath>

#include "clnet/error.h"
#include "lib/graph/node.h"
#include "lib/ops/catalogue.h"
#include "tests/cases/case.h"
#include "tests/reference/elementwise/elementwise.h"

namespace clnet::testing {

struct ElementwiseFunction {
  const ops::Operation* operation;
  const reference::Formula* formula;
  std::vector<double> parameters;  ///< of a call without any

  Tensor run(const std::vector<Tensor>& in) const {
    return operation->unary ? operation->unary(in[0]) : operation->binary(in[0], in[1]);
  }
  Array reference(const Arrays& in) const {
    const Shape shape = in.size() == 1 ? in[0].shape : broadcast(in[0].shape, in[1].shape, operation->name);
    return reference::elementwise(*formula, in, parameters.data(), shape);
  }
  double operator()(double x) const { return formula->of(&x, parameters.data()); }
};

/// Throws Error naming a function without a formula.
inline std::vector<ElementwiseFunction> elementwise_functions() {
  std::vector<ElementwiseFunction> result;
  for (const auto& operation : ops::catalogue()) {
    if (!operation.unary && !operation.binary) continue;
    ElementwiseFunction function{&operation, reference::find_formula(operation.name), {}};
    const bool whole = operation.takes == ops::Takes::whole || operation.takes == ops::Takes::integers;
    const Tensor one = ones({1}, operation.takes == ops::Takes::bools ? Dtype::boolean : whole ? Dtype::i32 : Dtype::f32);
    const auto y = function.run({one, one});
    // A function with variants is one operation each.
    if (!function.formula) function.formula = reference::find_formula(node_of(y)->op->name());
    if (!function.formula)
      throw Error("tests/reference/elementwise/elementwise.h has no formula '" + std::string(operation.name) + "'");
    const auto expression = node_of(y)->op->expr(specs_of(node_of(y)->inputs));
    function.parameters = expression.parameters;
    function.parameters.resize(3);
    result.push_back(std::move(function));
  }
  return result;
}

/// An operand with elements that the catalogue allows; where it allows any, from `low` to `high`.
inline Input drawn(const ops::Operand& operand, const Shape& shape, double low = -3, double high = 3) {
  const auto [from, to] = operand.drawn;
  if (std::isinf(from) && std::isinf(to)) return {shape, low, high};
  return {shape, std::isinf(from) ? to - 4 : from, std::isinf(to) ? from + 4 : to};
}

/// Of operands of one shape, and of two that broadcast.
inline std::vector<Case> catalogued_cases() {
  std::vector<Case> cases;
  for (const auto& function : elementwise_functions()) {
    const auto& operation = *function.operation;
    const bool truth = operation.takes == ops::Takes::bools;
    const bool whole = operation.takes == ops::Takes::whole || operation.takes == ops::Takes::integers;
    // Numbers that are often equal.
    const bool compares = operation.gives == ops::Gives::boolean && operation.takes == ops::Takes::all;
    const auto add = [&](const std::vector<Shape>& shapes, Dtype compared) {
      std::vector<Input> inputs;
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        inputs.push_back(drawn(operation.operands[i], shapes[i]));
        if (truth) inputs.back() = {shapes[i], 0, 1, Dtype::boolean};
        if (compares) inputs.back() = {shapes[i], -2, 2, compared};
        if (whole) inputs.back() = drawn(operation.operands[i], shapes[i], -20, 20), inputs.back().dtype = compared;
      }
      cases.push_back({.name = std::string(operation.name),
                       .inputs = std::move(inputs),
                       .run = [=](const std::vector<Tensor>& in) { return std::vector{function.run(in)}; },
                       .reference = [=](const Arrays& in) { return Arrays{function.reference(in)}; },
                       // That of stop_gradient is not of its values.
                       .gradient = !truth && !whole && operation.gives == ops::Gives::same && operation.name != "stop_gradient"});
    };
    if (operation.unary) {
      add({{3, 5, 7}}, Dtype::f32);
      continue;
    }
    add({{3, 4, 5}, {3, 4, 5}}, Dtype::i32);
    add({{3, 5, 7}, {5, 1}}, Dtype::i64);
  }
  return cases;
}

}  // namespace clnet::testing
