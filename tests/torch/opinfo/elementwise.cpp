// Elementwise operations of one and of several tensors.
#include <cmath>

#include "tests/torch/opinfo/adapters.h"

namespace clnet::torch::opinfo {

namespace {

const Binary plus{operator+, operator+, operator+ },
                  minus{operator-, operator-, operator- },
                        times{operator*, operator*, operator* },
                              over{operator/, operator/, operator/ }, power{pow, pow, pow}, larger{maximum, maximum, maximum},
                                   smaller{minimum, minimum, minimum};

Tensor same_value(const Tensor& x) { return x; }

/// "alpha" times an operand.
Operand scaled(const Operand& operand, double alpha) {
  if (alpha == 1) return operand;
  if (const auto* number = std::get_if<double>(&operand)) return *number * alpha;
  return std::get<Tensor>(operand) * alpha;
}

Tensor divided(const Args& in) {
  const auto quotient = over(in.operand(0, "input"), in.operand(1, "other"));
  const auto mode = in.text(2, "rounding_mode", "");
  if (mode == "trunc") return trunc(quotient);
  if (mode == "floor") return floor(quotient);
  if (!mode.empty()) throw Failed("unknown rounding_mode " + mode);
  return quotient;
}

Tensor clamped(const Args& in) {
  Tensor x = in.tensor(0);
  if (in.find(1, "min") != nullptr) x = std::get<Tensor>(Operand(larger(x, in.operand(1, "min"))));
  if (in.find(2, "max") != nullptr) x = smaller(x, in.operand(2, "max"));
  return x;
}

Tensor chosen_by(const Args& in) {
  const auto condition = in.tensor(0, "condition");
  const auto a = in.operand(1, "input"), b = in.operand(2, "other");
  const auto *x = std::get_if<Tensor>(&a), *y = std::get_if<Tensor>(&b);
  if (x != nullptr && y != nullptr) return require_one_dtype({*x, *y}), where(condition, *x, *y);
  if (x != nullptr) return where(condition, *x, std::get<double>(b));
  if (y != nullptr) return where(condition, std::get<double>(a), *y);
  return where(condition, std::get<double>(a), std::get<double>(b));
}

Tensor rounded(const Args& in) {
  const auto decimals = in.integer(1, "decimals", 0);
  if (decimals == 0) return round(in.tensor(0));
  const double scale = std::pow(10.0, static_cast<double>(decimals));
  return decimals > 0 ? round(in.tensor(0) * scale) / scale : round(in.tensor(0) / (1 / scale)) * (1 / scale);
}

Tensor filled(const Args& in) {
  const auto x = in.tensor(0), mask = in.tensor(1, "mask");
  const auto value = in.operand(2, "value");
  if (const auto* number = std::get_if<double>(&value)) {
    const auto shape = broadcast(x.shape(), mask.shape(), "masked_fill");
    return masked_fill(expand(x, shape), mask, *number);
  }
  require_one_dtype({x, std::get<Tensor>(value)});
  return where(mask, std::get<Tensor>(value), x);
}

Tensor converted(const Args& in) {
  auto dtype = in.tensor(0).dtype();
  for (int at = 1; at < in.count(); ++at) {
    const auto* value = in.find(at, "");
    if (value == nullptr || value->is_boolean() || value->is_string()) continue;
    dtype = in.is_tensor(at, "") ? in.tensor(at, "other").dtype() : in.dtype(at, "dtype", dtype);
  }
  return cast(in.tensor(0), in.dtype(in.count(), "dtype", dtype));
}

}  // namespace

void add_elementwise(Adapters& adapters) {
  const std::map<std::string, Unary> unaries{{"abs", abs}, {"ceil", ceil}, {"cos", cos}, {"erf", erf}, {"exp", exp},
                                             {"expm1", expm1}, {"floor", floor}, {"frac", frac}, {"log", log}, {"log1p", log1p},
                                             {"log2", log2},
                                             {"neg", operator- },
                                              {"reciprocal", reciprocal},
                                              {"rsqrt", rsqrt},
                                              {"sigmoid", sigmoid},
                                              {"sign", sign},
                                              {"sin", sin},
                                              {"sqrt", sqrt},
                                              {"square", square},
                                              {"tanh", tanh},
                                              {"trunc", trunc},
                                              {"isnan", is_nan},
                                              {"logical_not", logical_not},
                                              // Values never change, and nothing is complex.
                                              {"alias_copy", same_value},
                                              {"clone", same_value},
                                              {"conj", same_value},
                                              {"conj_physical", same_value},
                                              {"contiguous", same_value},
                                              {"positive", same_value},
                                              {"resolve_conj", same_value},
                                              {"resolve_neg", same_value},
                                              {"real", same_value}};
  for (const auto& [name, function] : unaries) adapters[name] = unary(function);
  const std::map<std::string, Binary> binaries{{"true_divide", over},
                                               {"mul", times},
                                               {"pow", power},
                                               {"float_power", power},
                                               {"fmod", {fmod, fmod, fmod}},
                                               {"atan2", {atan2, atan2, atan2}},
                                               {"hypot", {hypot, hypot, hypot}},
                                               {"logaddexp", {logaddexp, logaddexp, logaddexp}},
                                               {"xlogy", {xlogy, xlogy, xlogy}},
                                               {"maximum", larger},
                                               {"minimum", smaller},
                                               {"clamp_min", larger},
                                               {"clamp_max", smaller},
                                               {"eq", {eq, eq, eq}},
                                               {"ne", {not_equal, not_equal, not_equal}},
                                               {"lt", {less, less, less}},
                                               {"le", {less_equal, less_equal, less_equal}},
                                               {"gt", {greater, greater, greater}},
                                               {"ge", {greater_equal, greater_equal, greater_equal}}};
  for (const auto& [name, function] : binaries) adapters[name] = binary(function);
  for (const auto& [name, function] :
       {std::pair{"__radd__", plus}, {"__rsub__", minus}, {"__rmul__", times}, {"__rdiv__", over}, {"__rpow__", power}})
    adapters[name] = reflected(function);
  adapters["add"] =
      one([](const Args& in) { return plus(in.operand(0, "input"), scaled(in.operand(1, "other"), in.number(2, "alpha", 1))); });
  adapters["sub"] =
      one([](const Args& in) { return minus(in.operand(0, "input"), scaled(in.operand(1, "other"), in.number(2, "alpha", 1))); });
  adapters["rsub"] =
      one([](const Args& in) { return minus(in.operand(1, "other"), scaled(in.operand(0, "input"), in.number(2, "alpha", 1))); });
  adapters["div"] = one(divided);
  adapters["clamp"] = one(clamped);
  adapters["where"] = one(chosen_by);
  adapters["round"] = one(rounded);
  adapters["masked_fill"] = one(filled);
  adapters["to"] = one(converted);
  adapters["logical_and"] = one([](const Args& in) { return logical_and(in.tensor(0), in.tensor(1, "other")); });
  adapters["logical_or"] = one([](const Args& in) { return logical_or(in.tensor(0), in.tensor(1, "other")); });
  adapters["lerp"] = one([](const Args& in) {
    const auto weight = in.operand(2, "weight");
    if (const auto* number = std::get_if<double>(&weight)) return lerp(in.tensor(0), in.tensor(1, "end"), *number);
    return lerp(in.tensor(0), in.tensor(1, "end"), std::get<Tensor>(weight));
  });
  adapters["addcmul"] = one([](const Args& in) {
    return addcmul(in.tensor(0), in.tensor(1, "tensor1"), in.tensor(2, "tensor2"), in.number(3, "value", 1));
  });
  adapters["addcdiv"] = one([](const Args& in) {
    return addcdiv(in.tensor(0), in.tensor(1, "tensor1"), in.tensor(2, "tensor2"), in.number(3, "value", 1));
  });
  adapters["nan_to_num"] = one([](const Args& in) {
    return nan_to_num(in.tensor(0), in.number(1, "nan", 0), in.maybe_number(2, "posinf"), in.maybe_number(3, "neginf"));
  });
  adapters["item"] = one([](const Args& in) { return Tensor::scalar(in.tensor(0).item<double>(), in.tensor(0).dtype()); });
  adapters["equal"] =
      one([](const Args& in) { return full({}, equal(in.tensor(0), in.tensor(1, "other")) ? 1 : 0, Dtype::boolean); });
  for (const auto& [name, dtype] : {std::pair{"bool", Dtype::boolean},
                                    {"byte", Dtype::u8},
                                    {"char", Dtype::i8},
                                    {"float", Dtype::f32},
                                    {"int", Dtype::i32},
                                    {"long", Dtype::i64}})
    adapters[name] = one([dtype = dtype](const Args& in) { return cast(in.tensor(0), dtype); });
}

}  // namespace clnet::torch::opinfo
