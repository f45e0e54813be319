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

bool of_integers(const ops::Operation& operation) {
  return operation.takes == ops::Takes::whole || operation.takes == ops::Takes::integers;
}

/// A value within the numbers that the operand allows.
Ref operand(Generator& g, const ops::Operation& operation, std::size_t place) {
  if (operation.takes == ops::Takes::bools) return g.truth();
  if (of_integers(operation)) return g.integers(20);
  const auto [low, high] = operation.operands[place].drawn;
  if (std::isinf(low) && std::isinf(high)) return g.floating();
  if (low == -high) return g.floating(high);
  if (std::isinf(high) && low > -1) return g.positive();
  const auto shape = g.shape(static_cast<int>(g.choose().integer(0, 3)));
  return g.leaf(shape, g.float_dtype(), {std::isinf(low) ? high - 4 : low, std::isinf(high) ? low + 4 : high});
}

/// Between which numbers the results of arguments within these lie: of some of them and of 0, and a step wider.
Range image(const ElementwiseFunction& function, Range a, Range b) {
  constexpr int steps = 64;
  const bool two = function.operation->binary != nullptr;
  const auto points = [](Range range, bool wanted) {
    std::vector<double> at;
    for (int i = 0; i <= (wanted ? steps : 0); ++i) at.push_back(range.low + (range.high - range.low) * i / steps);
    if (wanted && range.low < 0 && range.high > 0) at.push_back(0);
    std::sort(at.begin(), at.end());
    return at;
  };
  double low = INFINITY, high = -INFINITY, widest = 0;
  for (const double y : points(b, two)) {
    double before = NAN;
    for (const double x : points(a, true)) {
      const double operands[] = {x, y}, value = function.formula->of(operands, function.parameters.data());
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
      if (std::isfinite(before)) widest = std::max(widest, std::fabs(value - before));
      before = value;
    }
  }
  // Of no argument a finite result: of whatever size.
  if (low > high) return {-1e3, 1e3};
  // What does not go below 0 at these does not in between.
  return {low >= 0 ? (low - widest > 0 ? low - widest : 0) : low - widest, high + widest};
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
  const auto& operation = *function.operation;
  const auto name = std::string(operation.name);
  const auto a = operand(g, operation, 0);
  const auto [low, high] = operation.operands[1].drawn;
  const double least = std::isinf(low) ? -3 : low, most = std::isinf(high) ? std::max(3.0, least + 4) : high;
  if (operation.before_number && g.choose().chance(0.25)) {
    // Every dtype holds 0 and 1.
    const double number =
        of_integers(operation) ? g.choose().of({0.0, 1.0, 1.0}) : g.choose().of({least, (least + most) / 2 + 0.25, most});
    g.add(
        name, fmt::format("{}($0, {})", name, number), {a},
        [f = operation.before_number, number](const Tensors& in) { return f(in[0], number); },
        image(function, g.range(a), {number, number}));
    return true;
  }
  if (operation.takes == ops::Takes::bools) {
    const auto b = g.partner(g.shape_of(a), Dtype::boolean);
    g.add(name, name + "($0, $1)", {a, b}, [f = operation.binary](const Tensors& in) { return f(in[0], in[1]); }, {0, 1});
    return true;
  }
  if (of_integers(operation)) {
    // A sum of powers of 2 below the next one; shifts stay within all dtypes.
    const auto b = std::isinf(low) ? g.tame(g.partner(g.shape_of(a), g.dtype_of(a)), 20)
                                   : g.leaf(g.shape_of(a), g.dtype_of(a), {0, 2}, Fill::integers);
    g.add(name, name + "($0, $1)", {a, b}, [f = operation.binary](const Tensors& in) { return f(in[0], in[1]); }, {-1000, 1000});
    return true;
  }
  const auto b = std::isinf(low) && std::isinf(high) ? g.tame(g.partner(g.shape_of(a), g.dtype_of(a)), 8)
                                                     : g.leaf(g.shape_of(a), g.dtype_of(a), {least, most});
  g.add(
      name, name + "($0, $1)", {a, b}, [f = operation.binary](const Tensors& in) { return f(in[0], in[1]); },
      image(function, g.range(a), g.range(b)));
  return true;
}

/// One of the registered cases, with values that were made before where they fit.
bool add_case(Generator& g, const ops::Operation& operation, const std::vector<testing::Case>& cases) {
  const auto& example = g.choose().of(cases);
  std::vector<Ref> inputs;
  std::string code;
  // The results of the least, the largest and the middle numbers tell of what size others are.
  testing::Arrays least, most, middle;
  const auto dtype = g.float_dtype();
  for (const auto& input : example.inputs) {
    if (!g.fits(input.shape.numel())) return false;
    // ONNX gives indices outside of a tensor no meaning.
    const auto place = inputs.size();
    const bool is_index = place < operation.operands.size() && operation.operands[place].holds == ops::Holds::indices;
    if (g.is_plain() && is_index && input.low < 0) {
      inputs.push_back(g.leaf(input.shape, input.dtype, {0, 1}, Fill::integers));
    } else {
      const bool any = input.dtype == Dtype::f32 && input.low == -input.high;
      inputs.push_back(any ? g.tame(g.of_shape(input.shape, dtype), input.high)
                           : g.leaf(input.shape, input.dtype == Dtype::f32 ? dtype : input.dtype, {input.low, input.high},
                                    input.dtype == Dtype::f32 ? Fill::smooth : Fill::integers));
    }
    const auto filled = [&](double value) {
      return testing::Array(input.shape, std::vector<double>(static_cast<std::size_t>(input.shape.numel()), value));
    };
    least.push_back(filled(input.low));
    most.push_back(filled(input.high));
    middle.push_back(filled((input.low + input.high) / 2));
    code += fmt::format("{}${}", code.empty() ? "" : ", ", inputs.size() - 1);
  }
  double size = 1;
  for (const auto* in : {&least, &most, &middle}) {
    const auto results = example.reference(*in);
    for (double value : results[0].values)
      if (std::isfinite(value)) size = std::max(size, 2 * std::fabs(value));
  }
  g.add(std::string(operation.name), fmt::format("{}({} /* as in the case '{}' */)", operation.name, code, example.name), inputs,
        [run = example.run](const Tensors& in) { return run(in)[0]; }, {-size, size});
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
    entries.push_back(
        {operation.name, 1, [&operation, cases = table.cases()](Generator& g) { return add_case(g, operation, cases); }});
  }
  return entries;
}

}  // namespace clnet::fuzz
