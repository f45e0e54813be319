// How elementwise operations are written.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "lib/onnx/exporter.h"
#include "lib/onnx/write.h"

namespace clnet::onnx {
namespace {

std::string attribute(std::string_view name, auto value) { return write_attribute(name, value); }

/// The operators that compute what the operation of clnet does, by its name.
struct Named {
  std::string_view name, op;
};
constexpr Named same_unary[] = {{"abs", "Abs"},
                                {"onnx_sign", "Sign"},
                                {"exp", "Exp"},
                                {"log", "Log"},
                                {"sqrt", "Sqrt"},
                                {"sin", "Sin"},
                                {"cos", "Cos"},
                                {"erf", "Erf"},
                                {"floor", "Floor"},
                                {"ceil", "Ceil"},
                                {"round", "Round"},
                                {"tanh", "Tanh"},
                                {"sigmoid", "Sigmoid"},
                                {"relu", "Relu"},
                                {"selu", "Selu"},
                                {"mish", "Mish"},
                                {"softsign", "Softsign"},
                                {"is_nan", "IsNaN"},
                                {"logical_not", "Not"},
                                {"reciprocal", "Reciprocal"},
                                {"tan", "Tan"},
                                {"asin", "Asin"},
                                {"acos", "Acos"},
                                {"atan", "Atan"},
                                {"sinh", "Sinh"},
                                {"cosh", "Cosh"},
                                {"asinh", "Asinh"},
                                {"acosh", "Acosh"},
                                {"atanh", "Atanh"},
                                {"bitwise_not", "BitwiseNot"},
                                {"stop_gradient", "Identity"}};
constexpr Named same_binary[] = {{"add", "Add"},
                                 {"sub", "Sub"},
                                 {"mul", "Mul"},
                                 {"div", "Div"},
                                 {"pow", "Pow"},
                                 {"maximum", "Max"},
                                 {"minimum", "Min"},
                                 {"eq", "Equal"},
                                 {"less", "Less"},
                                 {"less_equal", "LessOrEqual"},
                                 {"greater", "Greater"},
                                 {"greater_equal", "GreaterOrEqual"},
                                 {"logical_and", "And"},
                                 {"logical_or", "Or"},
                                 {"logical_xor", "Xor"},
                                 {"bitwise_and", "BitwiseAnd"},
                                 {"bitwise_or", "BitwiseOr"},
                                 {"bitwise_xor", "BitwiseXor"}};

/// Whether elements are infinite; of narrow floats since operator set 20.
std::string infinite_of(SaveCall& call, const std::string& x, std::vector<std::string> attributes = {}) {
  const auto dtype = call.dtype();
  const bool taken = dtype == Dtype::f32 || dtype == Dtype::f64 || (call.opset() >= 20 && is_floating(dtype));
  return call.op("IsInf", {taken ? x : call.cast(x, Dtype::f32)}, std::move(attributes));
}

void is_inf_of(SaveCall& call) { call.give(infinite_of(call, call.in(0))); }

void neg_of(SaveCall& call) {
  if (call.dtype() != Dtype::u8) return call.give(call.op("Neg", {call.in(0)}));
  // ONNX has no negative u8: the low byte of an i32.
  const auto wide = call.op("Neg", {call.cast(call.in(0), Dtype::i32)});
  call.give(call.cast(call.op("BitwiseAnd", {wide, call.scalar(255, Dtype::i32)}), Dtype::u8));
}

/// An operator of one floating operand. Those of old operator sets take no bf16.
std::string unary(SaveCall& call, std::string_view op, const std::string& x, Dtype dtype,
                  std::vector<std::string> attributes = {}) {
  constexpr std::string_view old[] = {"Sin",  "Cos",       "Tan",      "Asin",     "Acos",       "Atan", "Sinh",
                                      "Cosh", "Asinh",     "Acosh",    "Atanh",    "Round",      "Selu", "Mish",
                                      "Elu",  "HardSwish", "Softsign", "Softplus", "HardSigmoid"};
  if (dtype != Dtype::bf16 || std::find(std::begin(old), std::end(old), op) == std::end(old))
    return call.op(op, {x}, std::move(attributes));
  return call.cast(call.op(op, {call.cast(x, Dtype::f32)}, std::move(attributes)), dtype);
}

void unary_as_is(SaveCall& call) {
  for (const auto& [name, op] : same_unary)
    if (name == call.name()) return call.give(unary(call, op, call.in(0), call.dtype()));
}

/// The number that stands beside a tensor; -1: there are two tensors.
int number_at(const SaveCall& call) { return call.has_field("number") ? static_cast<int>(call.integer("number")) : -1; }

bool holds(Dtype dtype, double value) {
  switch (dtype) {
    case Dtype::f16:
    case Dtype::bf16: return to_host(Tensor::scalar(value, dtype), type_of(dtype)).numbers()[0] == value;
    case Dtype::f32:
    case Dtype::f64: return true;
    case Dtype::i8: return value == std::floor(value) && value >= -0x1p7 && value < 0x1p7;
    case Dtype::u8: return value == std::floor(value) && value >= 0 && value < 0x1p8;
    case Dtype::i32: return value == std::floor(value) && value >= -0x1p31 && value < 0x1p31;
    case Dtype::i64: return value == std::floor(value) && value >= -0x1p53 && value <= 0x1p53;
    default: return false;
  }
}

/// The two operands in one dtype, and that: a number takes the tensor's where that holds it.
struct Operands {
  std::string a, b;
  Dtype dtype;
};
Operands operands_of(SaveCall& call) {
  const int number = number_at(call);
  if (number < 0) return {call.in(0), call.in(1), call.dtype(0)};
  const auto tensor = static_cast<std::size_t>(1 - number), other = static_cast<std::size_t>(number);
  const auto constant = call.constant(other);
  const auto own = call.dtype(tensor), given = call.dtype(other);
  const bool compares = call.out().dtype == Dtype::boolean;
  auto dtype = compares ? own : call.out().dtype;
  if (constant && !holds(dtype, constant->numbers()[0])) dtype = is_floating(own) ? Dtype::f32 : given;
  Operands result{.a = call.in_as(0, dtype), .b = call.in_as(1, dtype), .dtype = dtype};
  return result;
}

void binary_as_is(SaveCall& call) {
  std::string_view op;
  for (const auto& [name, named] : same_binary)
    if (name == call.name()) op = named;
  auto [a, b, dtype] = operands_of(call);
  if (dtype == Dtype::boolean) {
    // ONNX has no arithmetic and order of bool.
    if (op == "Mul" || op == "Min") op = "And";
    if (op == "Max") op = "Or";
    if (op == "Less" || op == "LessOrEqual" || op == "Greater" || op == "GreaterOrEqual") {
      a = call.cast(a, Dtype::i32);
      b = call.cast(b, Dtype::i32);
    }
    if (op == "Add" || op == "Sub" || op == "Div" || op == "Pow") call.refuse("of bool has no operator of ONNX");
  }
  auto y = call.op(op, {a, b});
  const bool compares = call.out().dtype == Dtype::boolean;
  if (!compares && dtype != call.out().dtype) y = call.cast(y, call.out().dtype);
  call.give(y);
}

void not_equal(SaveCall& call) {
  const auto [a, b, dtype] = operands_of(call);
  call.give(call.op("Not", {call.op("Equal", {a, b})}));
}

void cast_to(SaveCall& call) { call.give(call.cast(call.in(0), call.out().dtype)); }
void choose(SaveCall& call) { call.give(call.op("Where", {call.in(0), call.in(1), call.in(2)})); }

/// Formulas of a floating x, in its dtype.
struct Formula {
  SaveCall& call;
  std::string x = call.in(0);
  Dtype dtype = call.dtype();
  std::string number(double value) const { return call.scalar(value, dtype); }
  std::string mul(const std::string& a, const std::string& b) const { return call.op("Mul", {a, b}); }
  std::string add(const std::string& a, const std::string& b) const { return call.op("Add", {a, b}); }
  std::string sub(const std::string& a, const std::string& b) const { return call.op("Sub", {a, b}); }
  std::string div(const std::string& a, const std::string& b) const { return call.op("Div", {a, b}); }
  std::string of(std::string_view op, const std::string& a) const { return unary(call, op, a, dtype); }
  std::string where(const std::string& c, const std::string& a, const std::string& b) const {
    return call.op("Where", {c, a, b});
  }
  std::string scaled(const std::string& a, double by) const { return mul(a, number(by)); }
};

/// ONNX's Sign of a NaN is a NaN; clnet's is 0, as PyTorch's.
void sign_of(SaveCall& call) {
  const auto y = call.op("Sign", {call.in(0)});
  if (!is_floating(call.dtype())) return call.give(y);
  const Formula f{call};
  call.give(f.where(f.of("IsNaN", f.x), f.number(0), y));
}

void square_of(SaveCall& call) { call.give(call.op("Mul", {call.in(0), call.in(0)})); }
void powers(SaveCall& call) {
  const Formula f{call};
  const auto name = call.name();
  if (name == "pow_half") return call.give(f.of("Sqrt", f.x));
  if (name == "pow_minus_half") return call.give(f.of("Reciprocal", f.of("Sqrt", f.x)));
  if (name == "pow_3_halves") return call.give(f.mul(f.x, f.of("Sqrt", f.x)));
  const auto squared = f.mul(f.x, f.x);
  if (name == "pow_minus_2") return call.give(f.of("Reciprocal", squared));
  call.give(f.mul(squared, name == "pow_3" ? f.x : squared));
}
void reciprocal_root(SaveCall& call) { call.give(call.op("Reciprocal", {call.op("Sqrt", {call.in(0)})})); }

/// Attributes are f32: of f64, a number that f32 lacks stands in a formula instead.
bool fits_attribute(const SaveCall& call, double value) {
  return call.dtype() != Dtype::f64 || static_cast<double>(static_cast<float>(value)) == value;
}

void leaky(SaveCall& call) {
  const double slope = call.number("p0");
  if (fits_attribute(call, slope)) return call.give(call.op("LeakyRelu", {call.in(0)}, {attribute("alpha", slope)}));
  const Formula f{call};
  call.give(f.where(call.op("Less", {f.x, f.number(0)}), f.scaled(f.x, slope), f.x));
}
/// x above 0, alpha (exp(x / scale) - 1) below.
std::string exponential_below(SaveCall& call, double alpha, double scale) {
  const Formula f{call};
  const auto power = f.of("Exp", scale == 1 ? f.x : f.div(f.x, f.number(scale)));
  return f.where(call.op("Greater", {f.x, f.number(0)}), f.x, f.scaled(f.sub(power, f.number(1)), alpha));
}
void elu_of(SaveCall& call) {
  const double alpha = call.number("p0");
  if (!fits_attribute(call, alpha)) return call.give(exponential_below(call, alpha, 1));
  call.give(unary(call, "Elu", call.in(0), call.dtype(), {attribute("alpha", alpha)}));
}
void celu_of(SaveCall& call) {
  const double alpha = call.number("p0");
  // ONNX has it for float alone.
  if (call.dtype() == Dtype::f64) return call.give(exponential_below(call, alpha, alpha));
  const auto y = call.op("Celu", {call.in_as(0, Dtype::f32)}, {attribute("alpha", alpha)});
  call.give(call.dtype() == Dtype::f32 ? y : call.cast(y, call.dtype()));
}

void gelu_of(SaveCall& call) {
  const bool by_tanh = call.name() == "gelu_tanh";
  // ONNX defines it with constants of f32.
  if (call.opset() >= 20 && call.dtype() != Dtype::f64) {
    if (by_tanh) return call.give(call.op("Gelu", {call.in(0)}, {attribute("approximate", std::string_view("tanh"))}));
    return call.give(call.op("Gelu", {call.in(0)}));
  }
  const Formula f{call};
  if (by_tanh) {
    const auto cubic = f.scaled(f.mul(f.mul(f.x, f.x), f.x), 0.044715);
    const auto inner = f.of("Tanh", f.scaled(f.add(f.x, cubic), std::sqrt(2 / std::numbers::pi)));
    return call.give(f.mul(f.scaled(f.x, 0.5), f.add(inner, f.number(1))));
  }
  const auto error = f.of("Erf", f.div(f.x, f.number(std::numbers::sqrt2)));
  call.give(f.scaled(f.mul(f.x, f.add(error, f.number(1))), 0.5));
}
void normal_cdf_of(SaveCall& call) {
  const Formula f{call};
  call.give(f.scaled(f.add(f.of("Erf", f.div(f.x, f.number(std::numbers::sqrt2))), f.number(1)), 0.5));
}
void silu_of(SaveCall& call) {
  // Swish of operator set 24 is what few programs run.
  const Formula f{call};
  call.give(f.mul(f.x, f.of("Sigmoid", f.x)));
}
/// Of f64 a formula.
std::string sixth_of_line(const Formula& f) {
  return f.call.op("Clip", {f.div(f.add(f.x, f.number(3)), f.number(6)), f.number(0), f.number(1)});
}
void hard_sigmoid(SaveCall& call) {
  if (call.dtype() == Dtype::f64) return call.give(sixth_of_line({call}));
  call.give(unary(call, "HardSigmoid", call.in(0), call.dtype(), {attribute("alpha", 1.0 / 6), attribute("beta", 0.5)}));
}
void hard_swish(SaveCall& call) {
  const Formula f{call};
  call.give(call.dtype() == Dtype::f64 ? f.mul(f.x, sixth_of_line(f)) : f.of("HardSwish", f.x));
}
void soft_plus(SaveCall& call) {
  const Formula f{call};
  const double beta = call.number("p0"), threshold = call.number("p1");
  const auto scaled = beta == 1 ? f.x : f.scaled(f.x, beta);
  auto y = f.of("Softplus", scaled);
  if (beta != 1) y = f.scaled(y, 1 / beta);
  // Above the threshold x itself: the same in f32 from 17 on.
  const double same = call.dtype() == Dtype::f64 ? 37 : 17;
  call.give(threshold >= same ? y : f.where(call.op("Greater", {scaled, f.number(threshold)}), f.x, y));
}
void log_sigmoid_of(SaveCall& call) {
  const Formula f{call};
  call.give(f.of("Neg", f.of("Softplus", f.of("Neg", f.x))));
}

void clip(SaveCall& call) {
  const auto bound = [&](std::string_view field) {
    const double value = call.number(field);
    return std::isinf(value) ? std::string() : call.scalar(value, call.dtype());
  };
  call.give(call.op("Clip", {call.in(0), bound("p0"), bound("p1")}));
}
void nan_to_number(SaveCall& call) {
  const Formula f{call};
  const auto infinite = [&](bool above) {
    return infinite_of(
        call, f.x,
        {attribute("detect_negative", std::int64_t{above ? 0 : 1}), attribute("detect_positive", std::int64_t{above ? 1 : 0})});
  };
  auto y = f.where(f.of("IsNaN", f.x), f.number(call.number("p0")), f.x);
  y = f.where(infinite(true), f.number(call.number("p1")), y);
  call.give(f.where(infinite(false), f.number(call.number("p2")), y));
}

/// log(1 + x) by the rounded 1 + x and what it lost (Kahan).
std::string log_of_one_more(const Formula& f, const std::string& x) {
  const auto one = f.number(1), u = f.add(x, one), same = f.call.op("Equal", {u, one});
  const auto beside = f.where(same, one, f.sub(u, one));
  return f.where(same, x, f.div(f.mul(f.of("Log", u), x), beside));
}
void log1p_of(SaveCall& call) {
  const Formula f{call};
  call.give(log_of_one_more(f, f.x));
}
void expm1_of(SaveCall& call) {
  const Formula f{call};
  // (u - 1) x / log(u) of u = exp(x), where that is neither 1, 0 nor infinite.
  const auto one = f.number(1), u = f.of("Exp", f.x), less_one = f.sub(u, one);
  const auto same = call.op("Equal", {u, one});
  const auto plain = call.op("Or", {call.op("Equal", {less_one, f.number(-1)}), infinite_of(call, u)});
  const auto safe = f.where(call.op("Or", {same, plain}), f.number(2), u);
  const auto near = f.div(f.mul(less_one, f.x), f.of("Log", safe));
  call.give(f.where(same, f.x, f.where(plain, less_one, near)));
}
void scaled_logs(SaveCall& call) {
  const Formula f{call};
  call.give(f.scaled(f.of("Log", f.x), call.name() == "log2" ? std::numbers::log2e : std::numbers::log10e));
}
void exp2_of(SaveCall& call) {
  const Formula f{call};
  call.give(call.op("Pow", {f.number(2), f.x}));
}
void trunc_of(SaveCall& call) {
  const Formula f{call};
  call.give(f.where(call.op("Less", {f.x, f.number(0)}), f.of("Ceil", f.x), f.of("Floor", f.x)));
}
void erfc_of(SaveCall& call) {
  const Formula f{call};
  call.give(f.sub(f.number(1), f.of("Erf", f.x)));
}
void angles(SaveCall& call) {
  const Formula f{call};
  call.give(f.scaled(f.x, call.name() == "deg2rad" ? std::numbers::pi / 180 : 180 / std::numbers::pi));
}
void finite(SaveCall& call) {
  const Formula f{call};
  call.give(call.op("Not", {call.op("Or", {f.of("IsNaN", f.x), infinite_of(call, f.x)})}));
}
void logit_of(SaveCall& call) {
  const Formula f{call};
  call.give(f.of("Log", f.div(f.x, f.sub(f.number(1), f.x))));
}
void sinc_of(SaveCall& call) {
  const Formula f{call};
  const auto zero = call.op("Equal", {f.x, f.number(0)});
  const auto angle = f.scaled(f.where(zero, f.number(1), f.x), std::numbers::pi);
  call.give(f.where(zero, f.number(1), f.div(f.of("Sin", angle), angle)));
}

/// Formulas of two floating operands.
struct TwoFormula {
  Formula f;
  std::string a, b;
  explicit TwoFormula(SaveCall& call) : f{call, {}} {
    auto operands = operands_of(call);
    f.dtype = operands.dtype;
    a = operands.a;
    b = operands.b;
    if (operands.dtype != call.out().dtype && call.out().dtype != Dtype::boolean)
      call.refuse("with this number has no operator of ONNX");
  }
  std::string compare(std::string_view op, const std::string& x, const std::string& y) const { return f.call.op(op, {x, y}); }
};

void fmod_of(SaveCall& call) {
  const TwoFormula t(call);
  call.give(call.op("Mod", {t.a, t.b}, {attribute("fmod", std::int64_t{1})}));
}
void remainder_of(SaveCall& call) {
  const TwoFormula t(call);
  if (!is_floating(t.f.dtype)) return call.give(call.op("Mod", {t.a, t.b}));
  // The sign of the divisor.
  const auto rest = call.op("Mod", {t.a, t.b}, {attribute("fmod", std::int64_t{1})});
  const auto zero = t.f.number(0);
  const auto differs = call.op("Xor", {t.compare("Less", rest, zero), t.compare("Less", t.b, zero)});
  const auto more = call.op("And", {differs, call.op("Not", {t.compare("Equal", rest, zero)})});
  call.give(t.f.where(more, t.f.add(rest, t.b), rest));
}
void floor_divide_of(SaveCall& call) {
  const TwoFormula t(call);
  if (!is_floating(t.f.dtype)) call.refuse("of integers has no operator of ONNX");
  call.give(call.op("Floor", {t.f.div(t.a, t.b)}));
}
void hypot_of(SaveCall& call) {
  const TwoFormula t(call);
  // By the larger one, so that no square overflows.
  const auto a = t.f.of("Abs", t.a), b = t.f.of("Abs", t.b), most = call.op("Max", {a, b}), least = call.op("Min", {a, b});
  const auto none = t.compare("Equal", most, t.f.number(0));
  const auto ratio = t.f.div(least, t.f.where(none, t.f.number(1), most));
  call.give(t.f.mul(most, t.f.of("Sqrt", t.f.add(t.f.mul(ratio, ratio), t.f.number(1)))));
}
void log_add_exp(SaveCall& call) {
  const TwoFormula t(call);
  const bool by_two = call.name() == "logaddexp2";
  const auto most = call.op("Max", {t.a, t.b}), apart = t.f.of("Neg", t.f.of("Abs", t.f.sub(t.a, t.b)));
  const auto same = t.compare("Equal", t.a, t.b);
  const auto known = t.f.where(same, t.f.number(0), apart);
  const auto power = t.f.of("Exp", by_two ? t.f.scaled(known, std::numbers::ln2) : known);
  const auto more = log_of_one_more(t.f, power);
  call.give(t.f.add(most, by_two ? t.f.scaled(more, std::numbers::log2e) : more));
}
void x_log_y(SaveCall& call) {
  const TwoFormula t(call);
  const auto log = call.name() == "xlogy" ? t.f.of("Log", t.b) : log_of_one_more(t.f, t.b);
  const auto none = call.op("And", {t.compare("Equal", t.a, t.f.number(0)), call.op("Not", {t.f.of("IsNaN", t.b)})});
  call.give(t.f.where(none, t.f.number(0), t.f.mul(t.a, log)));
}
void atan2_of(SaveCall& call) {
  const TwoFormula t(call);
  const auto zero = t.f.number(0), below = t.compare("Less", t.b, zero), none = t.compare("Equal", t.b, zero);
  const auto angle = t.f.of("Atan", t.f.div(t.a, t.f.where(none, t.f.number(1), t.b)));
  const auto half = [&](double value) {
    const auto sign = t.f.where(t.compare("Less", t.a, zero), t.f.number(-1), t.f.number(1));
    return t.f.scaled(sign, value);
  };
  const auto upright = t.f.mul(t.f.of("Abs", t.f.of("Sign", t.a)), half(std::numbers::pi / 2));
  call.give(t.f.where(none, upright, t.f.where(below, t.f.add(angle, half(std::numbers::pi)), angle)));
}
void heaviside_of(SaveCall& call) {
  const TwoFormula t(call);
  const auto zero = t.f.number(0);
  const auto step = call.cast(t.compare("Greater", t.a, zero), call.out().dtype);
  call.give(t.f.where(t.compare("Equal", t.a, zero), t.b, step));
}
/// A NaN gives the other operand.
void extremes(SaveCall& call) {
  const TwoFormula t(call);
  const auto op = call.name() == "fmax" ? "Max" : "Min";
  if (!is_floating(t.f.dtype)) return call.give(call.op(op, {t.a, t.b}));
  const auto a = t.f.where(t.f.of("IsNaN", t.a), t.b, t.a), b = t.f.where(t.f.of("IsNaN", t.b), t.a, t.b);
  call.give(call.op(op, {a, b}));
}

/// The operand, first value and step of a range.
void arange_of(SaveCall& call) {
  const auto dtype = call.out().dtype;
  const auto wide = call.dtype(0);
  const auto start = call.constant(0), step = call.constant(1);
  if (!start || !step) call.follow_no_batch();
  // 0, 1, 2, ... as integers, so that rounding makes no element more or less.
  const auto count = call.op("Reshape", {call.list(ExtentList{call.extent("count")}), call.list(std::vector<std::int64_t>{})});
  auto y = call.op("Range", {call.scalar(0, Dtype::i64), count, call.scalar(1, Dtype::i64)});
  if (wide != Dtype::i64) y = call.cast(y, wide);
  if (step->numbers()[0] != 1) y = call.op("Mul", {y, call.in(1)});
  if (start->numbers()[0] != 0) y = call.op("Add", {y, call.in(0)});
  call.give(dtype == wide ? y : call.cast(y, dtype));
}

/// a1 * b2 - a2 * b1 and so on, by the orders of a's and b's elements.
void cross_of(SaveCall& call) {
  const auto dim = call.integer("dim");
  const auto in_order = [&](std::size_t input, std::int64_t first) {
    const auto order = call.list(std::vector<std::int64_t>{first, (first + 1) % 3, (first + 2) % 3});
    return call.op("Gather", {call.in(input), order}, {write_attribute("axis", dim)});
  };
  const auto plus = call.op("Mul", {in_order(0, 1), in_order(1, 2)}), minus = call.op("Mul", {in_order(0, 2), in_order(1, 1)});
  call.give(call.op("Sub", {plus, minus}));
}

}  // namespace

std::vector<Saver> elementwise_savers() {
  std::vector<Saver> all{
      {"square", square_of},
      {"neg", neg_of},
      {"sign", sign_of},
      {"is_inf", is_inf_of},
      {"pow_3", powers},
      {"pow_4", powers},
      {"pow_minus_2", powers},
      {"pow_half", powers},
      {"pow_minus_half", powers},
      {"pow_3_halves", powers},
      {"rsqrt", reciprocal_root},
      {"leaky_relu", leaky},
      {"elu", elu_of},
      {"celu", celu_of},
      {"gelu_erf", gelu_of},
      {"gelu_tanh", gelu_of},
      {"normal_cdf", normal_cdf_of},
      {"silu", silu_of},
      {"hardsigmoid", hard_sigmoid},
      {"hardswish", hard_swish},
      {"softplus", soft_plus},
      {"log_sigmoid", log_sigmoid_of},
      {"clamp", clip},
      {"hardtanh", clip},
      {"nan_to_num", nan_to_number},
      {"log1p", log1p_of},
      {"expm1", expm1_of},
      {"log2", scaled_logs},
      {"log10", scaled_logs},
      {"exp2", exp2_of},
      {"trunc", trunc_of},
      {"erfc", erfc_of},
      {"deg2rad", angles},
      {"rad2deg", angles},
      {"is_finite", finite},
      {"logit", logit_of},
      {"sinc", sinc_of},
      {"fmod", fmod_of},
      {"remainder", remainder_of},
      {"floor_divide", floor_divide_of},
      {"hypot", hypot_of},
      {"logaddexp", log_add_exp},
      {"logaddexp2", log_add_exp},
      {"xlogy", x_log_y},
      {"xlog1py", x_log_y},
      {"atan2", atan2_of},
      {"heaviside", heaviside_of},
      {"fmax", extremes},
      {"fmin", extremes},
      {"not_equal", not_equal},
      {"cast", cast_to},
      {"where", choose},
      {"cross", cross_of},
      {"arange", arange_of},
  };
  for (const auto& [name, op] : same_unary) all.push_back({name, unary_as_is});
  for (const auto& [name, op] : same_binary) all.push_back({name, binary_as_is});
  return all;
}

}  // namespace clnet::onnx
