// GELU as exporters write it: by erf, 0.5 x (1 + erf(x / sqrt(2))), or by tanh, 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715
// x^3))).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/onnx/passes.h"

namespace clnet::onnx {
namespace {

/// A number that the pattern wants at a place of its inputs.
struct Wanted {
  Slot slot;
  double value;
};

Match gelu_of(Slot x, std::vector<Wanted> numbers, std::vector<std::size_t> parts, Gelu form) {
  Match out;
  out.parts = std::move(parts);
  out.inputs = {x};
  std::vector<double> values;
  for (const auto& [slot, value] : numbers) {
    out.inputs.push_back(slot);
    values.push_back(value);
  }
  out.run = [values, form](const Call& call) -> std::optional<Outputs> {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!is_number(call, i + 1, values[i]) || call.shape(i + 1).rank() > call.shape(0).rank()) return std::nullopt;
    return Outputs{call.give(gelu(call.x(0), form))};
  };
  return out;
}

/// The argument of erf: x / sqrt(2), or the product with the inverse.
bool is_erf_argument(const Uses& uses, Slot slot, Slot x, std::vector<Wanted>& numbers, std::vector<std::size_t>& parts) {
  if (const auto quotient = uses.maker(slot, "Div")) {
    if (uses.input(*quotient, 0) != x || !uses.is_fixed(uses.input(*quotient, 1))) return false;
    parts.push_back(*quotient);
    numbers.push_back({uses.input(*quotient, 1), std::numbers::sqrt2});
    return true;
  }
  const auto product = uses.maker(slot, "Mul");
  const auto operands = product ? uses.with_fixed(*product) : std::nullopt;
  if (!operands || operands->first != x) return false;
  parts.push_back(*product);
  numbers.push_back({operands->second, 1 / std::numbers::sqrt2});
  return true;
}

/// x^3 times a number, by a power or by products.
bool is_cube(const Uses& uses, Slot slot, Slot x, std::vector<Wanted>& numbers, std::vector<std::size_t>& parts) {
  const auto product = uses.maker(slot, "Mul");
  if (!product) return false;
  int powers = 0;
  std::size_t fixed = 0;
  for (const auto factor : uses.factors(*product, parts)) {
    if (uses.is_fixed(factor)) {
      numbers.push_back({factor, 0.044715});
      ++fixed;
    } else if (factor == x) {
      ++powers;
    } else if (const auto power = uses.maker(factor, "Pow"); power && uses.input(*power, 0) == x) {
      parts.push_back(*power);
      numbers.push_back({uses.input(*power, 1), 3});
      powers += 3;
    } else {
      return false;
    }
  }
  return powers == 3 && fixed == 1;
}

/// The argument of tanh: sqrt(2 / pi) (x + 0.044715 x^3).
bool is_tanh_argument(const Uses& uses, Slot slot, Slot x, std::vector<Wanted>& numbers, std::vector<std::size_t>& parts) {
  const auto product = uses.maker(slot, "Mul");
  const auto operands = product ? uses.with_fixed(*product) : std::nullopt;
  const auto sum = operands ? uses.maker(operands->first, "Add") : std::nullopt;
  if (!sum) return false;
  parts.insert(parts.end(), {*product, *sum});
  numbers.push_back({operands->second, std::sqrt(2 / std::numbers::pi)});
  const auto first = uses.input(*sum, 0), second = uses.input(*sum, 1);
  if (first == x) return is_cube(uses, second, x, numbers, parts);
  return second == x && is_cube(uses, first, x, numbers, parts);
}

}  // namespace

std::optional<Match> match_gelu(const Uses& uses, std::size_t last) {
  if (!uses.is(last, "Mul")) return std::nullopt;
  std::vector<std::size_t> parts;
  const auto factors = uses.factors(last, parts);
  if (factors.size() != 3) return std::nullopt;
  const auto half = std::find_if(factors.begin(), factors.end(), [&](auto slot) { return uses.is_fixed(slot); });
  const auto sum = std::find_if(factors.begin(), factors.end(), [&](auto slot) {
    const auto made = uses.maker(slot, "Add");
    const auto terms = made ? uses.with_fixed(*made) : std::nullopt;
    return terms && (uses.maker(terms->first, "Erf") || uses.maker(terms->first, "Tanh"));
  });
  if (half == factors.end() || sum == factors.end() || half == sum) return std::nullopt;
  const auto x = factors[3 - static_cast<std::size_t>(half - factors.begin()) - static_cast<std::size_t>(sum - factors.begin())];
  const auto terms = *uses.with_fixed(*uses.maker(*sum, "Add"));
  const auto erf = uses.maker(terms.first, "Erf");
  const auto function = erf ? *erf : *uses.maker(terms.first, "Tanh");
  parts.insert(parts.end(), {*uses.maker(*sum, "Add"), function});
  std::vector<Wanted> numbers{{*half, 0.5}, {terms.second, 1}};
  const auto fits = erf ? is_erf_argument : is_tanh_argument;
  if (!fits(uses, uses.input(function, 0), x, numbers, parts)) return std::nullopt;
  return gelu_of(x, std::move(numbers), std::move(parts), erf ? Gelu::erf : Gelu::tanh);
}

}  // namespace clnet::onnx
