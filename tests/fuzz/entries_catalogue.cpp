// Random calls that the catalogue of operations describes: elementwise functions with their formulas, and registered cases.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lib/ops/catalogue.h"
#include "tests/all_cases.h"
#include "tests/fuzz/generator.h"

namespace clnet::fuzz {

namespace {

using testing::ElementwiseFunction;

/// A value within the numbers that the operand allows.
Ref operand(Generator& g, const ops::Operation& operation, std::size_t place) {
  if (operation.takes == ops::Takes::bools) return g.truth();
  const auto [low, high] = operation.operands[place].drawn;
  if (std::isinf(low) && std::isinf(high)) return g.floating();
  if (std::isfinite(low) && std::isinf(high)) return g.positive();
  return g.floating(std::min(std::fabs(low), std::fabs(high)));
}

/// Between which numbers the results of arguments within these lie, as far as a few of them tell.
Range image(const ElementwiseFunction& function, Range a, Range b) {
  constexpr int steps = 64;
  Range result{INFINITY, -INFINITY};
  const bool two = function.operation->binary != nullptr;
  for (int i = 0; i <= steps; ++i)
    for (int k = 0; k <= (two ? steps : 0); ++k) {
      const double at[] = {a.low + (a.high - a.low) * i / steps, b.low + (b.high - b.low) * k / steps};
      const double y = function.formula->of(at, function.parameters.data());
      if (!std::isfinite(y)) continue;
      result = {std::min(result.low, y), std::max(result.high, y)};
    }
  return result.low <= result.high ? result : Range{0, 0};
}

bool add_unary(Generator& g, const ElementwiseFunction& function) {
  const auto x = operand(g, *function.operation, 0);
  const auto name = std::string(function.operation->name);
  g.add(
      name, name + "($0)", {x}, [f = function.operation->unary](const Tensors& in) { return f(in[0]); },
      image(function, g.range(x), {}));
  return true;
}

bool add_binary(Generator& g, const ElementwiseFunction& function) {
  const auto a = operand(g, *function.operation, 0);
  auto b = g.partner(g.shape_of(a), g.dtype_of(a));
  if (function.operation->takes != ops::Takes::bools) {
    const auto [low, high] = function.operation->operands[1].drawn;
    b = g.tame(b, std::isinf(high) ? 8 : high);
    if (low > 0) {
      const auto raw = b;
      b = g.add("operator+", fmt::format("abs($0) + {}", low), {raw}, [low = low](const Tensors& in) { return abs(in[0]) + low; },
                {low, g.range(raw).size() + low});
    }
  }
  const auto name = std::string(function.operation->name);
  g.add(
      name, name + "($0, $1)", {a, b}, [f = function.operation->binary](const Tensors& in) { return f(in[0], in[1]); },
      image(function, g.range(a), g.range(b)));
  return true;
}

/// The first case, with values that were made before where they fit.
bool add_case(Generator& g, const ops::Operation& operation, const testing::Case& example) {
  std::vector<Ref> inputs;
  std::string code;
  const auto dtype = g.float_dtype();
  for (std::size_t i = 0; i < example.inputs.size(); ++i) {
    const auto& input = example.inputs[i];
    inputs.push_back(input.dtype == Dtype::f32
                         ? g.tame(g.of_shape(input.shape, dtype), std::max(std::fabs(input.low), std::fabs(input.high)))
                         : g.leaf(input.shape, input.dtype, {input.low, input.high}, Fill::integers));
    code += fmt::format("{}${}", i == 0 ? "" : ", ", i);
  }
  g.add(std::string(operation.name), fmt::format("{}({} /* {} */)", operation.name, code, example.name), inputs,
        [run = example.run](const Tensors& in) { return run(in)[0]; }, {-64, 64});
  return true;
}

}  // namespace

std::string_view catalogued_name(std::string_view function) {
  static const std::map<std::string_view, std::string_view> operators{
      {"operator+", "add"}, {"operator-", "sub"}, {"operator*", "mul"}, {"operator/", "div"}};
  const auto found = operators.find(function);
  return found == operators.end() ? function : found->second;
}

std::vector<Entry> catalogued_entries(const std::set<std::string_view>& names) {
  std::vector<Entry> entries;
  for (const auto& function : testing::elementwise_functions()) {
    const auto name = function.operation->name;
    if (names.contains(name) || name == "neg") continue;  // operator- is one name for both
    if (function.operation->unary)
      entries.push_back({name, 1, [=](Generator& g) { return add_unary(g, function); }});
    else
      entries.push_back({name, 1.5, [=](Generator& g) { return add_binary(g, function); }});
  }
  for (const auto& table : testing::registered_cases()) {
    const auto& operation = ops::catalogued(table.operation);
    if (names.contains(operation.name)) continue;
    entries.push_back({operation.name, 1,
                       [&operation, example = table.cases().front()](Generator& g) { return add_case(g, operation, example); }});
  }
  return entries;
}

}  // namespace clnet::fuzz
