// Random calls of the elementwise operations that have parameters or several operands; entries_catalogue.cpp has the others.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tests/fuzz/generator.h"

namespace clnet::fuzz {

namespace {

Range symmetric(Range x) { return {-x.size(), x.size()}; }

// ---- With parameters

using WithParameters = Tensor (*)(const Tensor& x, double a, double b);
bool add_parametrized(Generator& g, std::string_view name, std::string code, double a, double b, WithParameters f, Range range) {
  const auto x = g.floating();
  if (range.low > range.high) range = g.range(x);
  g.add(
      std::string(name), fmt::format(fmt::runtime(code), a, b), {x}, [=](const Tensors& in) { return f(in[0], a, b); }, range);
  return true;
}
constexpr Range as_argument{1, -1};

bool add_leaky_relu(Generator& g) {
  return add_parametrized(
      g, "leaky_relu", "leaky_relu($0, {})", g.choose().of({0.01, 0.25, -0.5}), 0,
      [](const Tensor& x, double a, double) { return leaky_relu(x, a); }, as_argument);
}
bool add_elu(Generator& g) {
  return add_parametrized(
      g, "elu", "elu($0, {})", g.choose().of({1.0, 0.5}), 0, [](const Tensor& x, double a, double) { return elu(x, a); },
      as_argument);
}
bool add_celu(Generator& g) {
  return add_parametrized(
      g, "celu", "celu($0, {})", g.choose().of({1.0, 0.5, 2.0}), 0, [](const Tensor& x, double a, double) { return celu(x, a); },
      as_argument);
}
bool add_gelu(Generator& g) {
  if (g.choose().chance(0.5))
    return add_parametrized(
        g, "gelu", "gelu($0)", 0, 0, [](const Tensor& x, double, double) { return gelu(x); }, as_argument);
  return add_parametrized(
      g, "gelu", "gelu($0, Gelu::tanh)", 0, 0, [](const Tensor& x, double, double) { return gelu(x, Gelu::tanh); }, as_argument);
}
bool add_hardtanh(Generator& g) {
  return add_parametrized(g, "hardtanh", "hardtanh($0, {}, {})", g.choose().of({-1.0, -0.5}), g.choose().of({1.0, 0.25}),
                          [](const Tensor& x, double a, double b) { return hardtanh(x, a, b); }, {-1, 1});
}
bool add_softplus(Generator& g) {
  return add_parametrized(g, "softplus", "softplus($0, {}, {})", g.choose().of({1.0, 2.0}), g.choose().of({20.0, 1.5}),
                          [](const Tensor& x, double a, double b) { return softplus(x, a, b); }, {0, 9});
}
bool add_clamp(Generator& g) {
  if (g.choose().chance(0.3))
    return add_parametrized(
        g, "clamp", "clamp($0, {})", -0.5, 0, [](const Tensor& x, double a, double) { return clamp(x, a); }, as_argument);
  return add_parametrized(g, "clamp", "clamp($0, {}, {})", g.choose().of({-1.0, 0.25}), g.choose().of({1.0, 1.5}),
                          [](const Tensor& x, double a, double b) { return clamp(x, a, b); }, {-1, 1.5});
}

bool add_threshold(Generator& g) {
  return add_parametrized(
      g, "threshold", "threshold($0, {}, {})", 0.25, -1, [](const Tensor& x, double a, double b) { return threshold(x, a, b); },
      as_argument);
}

bool add_nan_to_num(Generator& g) {
  return add_parametrized(
      g, "nan_to_num", "nan_to_num($0, {}, {})", 0.5, 2, [](const Tensor& x, double a, double b) { return nan_to_num(x, a, b); },
      as_argument);
}

// ---- Of several operands

bool add_prelu(Generator& g) {
  const auto x = g.floating(8, 2);
  const auto weight = g.leaf(Shape{g.choose().chance(0.5) ? 1 : g.shape_of(x)[1]}, g.dtype_of(x), {0.1, 1});
  g.add(
      "prelu", "prelu($0, $1)", {x, weight}, [](const Tensors& in) { return prelu(in[0], in[1]); }, g.range(x));
  return true;
}

bool add_glu(Generator& g) {
  const auto x = g.floating(8, 1);
  const auto& shape = g.shape_of(x);
  for (int dim = shape.rank() - 1; dim >= 0; --dim)
    if (shape[dim] % 2 == 0) {
      g.add(
          "glu", fmt::format("glu($0, {})", dim), {x}, [dim](const Tensors& in) { return glu(in[0], dim); }, g.range(x));
      return true;
    }
  return false;
}

bool add_lerp(Generator& g) {
  const auto a = g.floating();
  const auto b = g.of_shape(g.shape_of(a), g.dtype_of(a));
  const Range range{-16, 16};
  if (g.choose().chance(0.5)) {
    g.add(
        "lerp", "lerp($0, $1, 0.25)", {a, b}, [](const Tensors& in) { return lerp(in[0], in[1], 0.25); }, range);
    return true;
  }
  const auto weight = g.leaf(g.shape_of(a), g.dtype_of(a), {0, 1});
  g.add(
      "lerp", "lerp($0, $1, $2)", {a, b, weight}, [](const Tensors& in) { return lerp(in[0], in[1], in[2]); }, range);
  return true;
}

bool add_scaled(Generator& g, bool divides) {
  const auto x = g.floating(), a = g.tame(g.partner(g.shape_of(x), g.dtype_of(x), true), 4);
  const auto b = g.leaf(g.shape_of(x), g.dtype_of(x), {0.5, 2});
  const double most = g.range(x).size() + g.range(a).size() * 2;
  g.add(divides ? "addcdiv" : "addcmul", divides ? "addcdiv($0, $1, $2, 0.5)" : "addcmul($0, $1, $2, 0.5)", {x, a, b},
        [divides](const Tensors& in) { return divides ? addcdiv(in[0], in[1], in[2], 0.5) : addcmul(in[0], in[1], in[2], 0.5); },
        {-most, most});
  return true;
}

bool add_masked_fill(Generator& g) {
  const auto x = g.floating(), mask = g.partner(g.shape_of(x), Dtype::boolean, true);
  g.add(
      "masked_fill", "masked_fill($0, $1, -1)", {x, mask}, [](const Tensors& in) { return masked_fill(in[0], in[1], -1); },
      g.range(x));
  return true;
}

// ---- Binary

struct Binary {
  std::string_view name, sign;  ///< of an operator
  Tensor (*tensors)(const Tensor&, const Tensor&);
  Tensor (*number_after)(const Tensor&, double);
  Tensor (*number_before)(double, const Tensor&);
  Range (*range)(Range, Range);
};

Range sum_of(Range a, Range b) { return {a.low + b.low, a.high + b.high}; }
Range product_of(Range a, Range b) { return symmetric({0, a.size() * b.size()}); }
Range either(Range a, Range b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }
Range truth_of(Range, Range) { return {0, 1}; }

#define BINARY(name) name, name, name
constexpr Binary binaries[] = {
    {"operator+", "+", BINARY(operator+), sum_of},
    {"operator-", "-", BINARY(operator-),
     [](Range a, Range b) {
       return sum_of(a, {-b.high, -b.low});
     }},
    {"operator*", "*", BINARY(operator*), product_of},
    {"operator/", "/", BINARY(operator/),
     [](Range a, Range b) {
       return symmetric({0, a.size() / b.low});
     }},
    {"pow", "", BINARY(pow),
     [](Range a, Range b) {
       return Range{0, std::pow(std::max(a.high, 1 / a.low), b.size())};
     }},
    {"fmod", "", BINARY(fmod), [](Range a, Range) { return a; }},
    {"atan2", "", BINARY(atan2),
     [](Range, Range) {
       return Range{-3.2, 3.2};
     }},
    {"hypot", "", BINARY(hypot),
     [](Range a, Range b) {
       return Range{0, a.size() + b.size()};
     }},
    {"logaddexp", "", BINARY(logaddexp),
     [](Range a, Range b) {
       return Range{std::max(a.low, b.low), std::max(a.high, b.high) + 0.7};
     }},
    {"xlogy", "", BINARY(xlogy),
     [](Range a, Range b) {
       return symmetric({0, a.size() * (std::log(std::max(b.high, 1.0)) + 3)});
     }},
    {"maximum", "", BINARY(maximum), either},
    {"minimum", "", BINARY(minimum), either},
    {"eq", "", BINARY(eq), truth_of},
    {"not_equal", "", BINARY(not_equal), truth_of},
    {"less", "", BINARY(less), truth_of},
    {"less_equal", "", BINARY(less_equal), truth_of},
    {"greater", "", BINARY(greater), truth_of},
    {"greater_equal", "", BINARY(greater_equal), truth_of},
};
#undef BINARY

std::string call_of(const Binary& binary, const std::string& a, const std::string& b) {
  return binary.sign.empty() ? fmt::format("{}({}, {})", binary.name, a, b) : fmt::format("{} {} {}", a, binary.sign, b);
}

bool add_binary(Generator& g, const Binary& binary) {
  // Their second operand stays away from 0.
  static constexpr std::array<std::string_view, 5> apart{"operator/", "fmod", "atan2", "hypot", "xlogy"};
  const bool divides = std::find(apart.begin(), apart.end(), binary.name) != apart.end(), powers = binary.name == "pow",
             multiplies = binary.name == "operator*";
  const bool whole_numbers = !powers && !divides && binary.name != "logaddexp" && g.choose().chance(0.15);
  const auto a = powers ? g.positive() : whole_numbers ? g.integers() : g.floating();
  const auto name = std::string(binary.name);
  const auto f = binary.tensors;
  if (g.choose().chance(0.25)) {
    const double number =
        whole_numbers ? static_cast<double>(g.choose().integer(1, 4)) : g.choose().of({0.5, 2.0, 1.0, 0.25, 3.0});
    const auto range = g.range(a);
    if (!divides && g.choose().chance(0.3)) {
      const auto before = binary.number_before;
      // The gradient of the exponent wants a base above 0, and number ^ x is small where x is.
      if (powers && range.size() > 3) return false;
      g.add(
          name, call_of(binary, fmt::format("{:.2f}", number), "$0"), {a},
          [=](const Tensors& in) { return before(number, in[0]); },
          powers ? Range{0, 64} : binary.range({number, number}, range));
      return true;
    }
    const auto after = binary.number_after;
    g.add(
        name, call_of(binary, "$0", fmt::format("{:.2f}", number)), {a}, [=](const Tensors& in) { return after(in[0], number); },
        binary.range(range, {number, number}));
    return true;
  }
  auto b = g.choose().chance(0.15) ? g.line_of(a) : g.partner(g.shape_of(a), g.dtype_of(a));
  if (is_floating(g.dtype_of(a))) b = g.tame(b, powers ? 3 : 8);
  if (divides && g.range(b).low < 0.05) {
    const auto raw = b;
    b = g.add("operator+", "abs($0) + 0.5", {raw}, [](const Tensors& in) { return abs(in[0]) + 0.5; },
              {0.5, g.range(raw).size() + 0.5});
  }
  if (whole_numbers && multiplies && g.range(a).size() * g.range(b).size() > 1e6) return false;
  g.add(
      name, call_of(binary, "$0", "$1"), {a, b}, [f](const Tensors& in) { return f(in[0], in[1]); },
      binary.range(g.range(a), g.range(b)));
  return true;
}

template <std::size_t k>
bool binary(Generator& g) {
  return add_binary(g, binaries[k]);
}

template <std::size_t... k>
void append_binaries(std::vector<Entry>& entries, std::index_sequence<k...>) {
  (entries.push_back({binaries[k].name, binaries[k].sign.empty() ? 1.5 : 5.0, binary<k>}), ...);
}

bool add_negation(Generator& g) {
  const auto x = g.floating();
  const auto range = g.range(x);
  g.add("operator-", "-$0", {x}, [](const Tensors& in) { return -in[0]; }, {-range.high, -range.low});
  return true;
}

bool add_where(Generator& g) {
  const auto a = g.choose().chance(0.85) ? g.floating() : g.integers(),
             b = g.choose().chance(0.15) ? g.line_of(a) : g.partner(g.shape_of(a), g.dtype_of(a), true),
             condition = g.partner(g.shape_of(a), Dtype::boolean, true);
  g.add(
      "where", "where($0, $1, $2)", {condition, a, b}, [](const Tensors& in) { return where(in[0], in[1], in[2]); },
      either(g.range(a), g.range(b)));
  return true;
}

bool add_cast(Generator& g) {
  const auto x = g.any_value();
  auto range = g.range(x);
  const bool from_float = is_floating(g.dtype_of(x));
  auto to = g.allowed(g.choose().of({Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i32,
                                     Dtype::i64, Dtype::i8, Dtype::u8, Dtype::boolean}));
  if (g.casts_to_doubles()) to = Dtype::f64;
  // A number that the dtype cannot hold has no defined result.
  if (range.size() > 1000 || (to == Dtype::u8 && (range.low < 0 || range.high > 255))) to = Generator::wide(to);
  if (from_float && !is_floating(to) && range.size() >= 100) to = Dtype::f32;
  if (to == Dtype::i8 && range.size() > 127) to = Dtype::f32;
  if (to == Dtype::boolean) range = {0, 1};
  g.add(
      "cast", fmt::format("cast($0, Dtype::{})", to == Dtype::boolean ? "boolean" : to_string(to)), {x},
      [to](const Tensors& in) { return cast(in[0], to); }, range);
  return true;
}

}  // namespace

std::vector<Entry> elementwise_entries() {
  std::vector<Entry> entries{{"cast", 4, add_cast},
                             {"where", 4, add_where},
                             {"operator-", 1, add_negation},
                             {"leaky_relu", 1, add_leaky_relu},
                             {"elu", 1, add_elu},
                             {"celu", 1, add_celu},
                             {"gelu", 1, add_gelu},
                             {"hardtanh", 1, add_hardtanh},
                             {"softplus", 1, add_softplus},
                             {"clamp", 1, add_clamp},
                             {"threshold", 0.5, add_threshold},
                             {"nan_to_num", 0.5, add_nan_to_num},
                             {"addcmul", 0.7, [](Generator& g) { return add_scaled(g, false); }},
                             {"addcdiv", 0.7, [](Generator& g) { return add_scaled(g, true); }},
                             {"prelu", 1, add_prelu},
                             {"glu", 1, add_glu},
                             {"lerp", 1, add_lerp},
                             {"masked_fill", 1, add_masked_fill}};
  append_binaries(entries, std::make_index_sequence<std::size(binaries)>{});
  return entries;
}

}  // namespace clnet::fuzz
