// Functions of elements.
#include <cmath>

#include "tests/torch/composed.h"

namespace clnet::torch {

namespace {

using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);
using BinaryNumber = Tensor (*)(const Tensor&, double);

/// Of two tensors, or of one and an attribute.
Operation binary(Binary function, BinaryNumber with_number) {
  return [function, with_number](const Given& in) {
    const auto b = in[second];
    if (b.defined()) return y(function(in[first], b));
    if (in.find({"other", "exponent", "value", "numbers"}) == nullptr) throw Failed(in.op + " has no second operand");
    return y(with_number(in[first], in.parameter(0, {"other", "exponent", "value"}, 0)));
  };
}

/// What is meant by max: of two tensors, or of the elements of one.
Operation two_or(const Operation& two, const Operation& one) {
  return [two, one](const Given& in) { return in[second].defined() ? two(in) : one(in); };
}

/// What has numbers beside the tensor, in PyTorch's order.
void add_with_numbers(Operations& operations) {
  operations["leaky_relu"] = [](const Given& in) {
    return y(leaky_relu(in[first], in.parameter(0, {"negative_slope", "alpha"}, 0.01)));
  };
  operations["elu"] = [](const Given& in) { return y(elu(in[first], in.parameter(0, "alpha", 1))); };
  operations["celu"] = [](const Given& in) { return y(celu(in[first], in.parameter(0, "alpha", 1))); };
  operations["hardtanh"] = [](const Given& in) {
    return y(hardtanh(in[first], in.parameter(0, {"min_val", "min"}, -1), in.parameter(1, {"max_val", "max"}, 1)));
  };
  operations["clamp"] = operations["clip"] = [](const Given& in) {
    const double low = in.parameter(0, {"min", "low"}, -INFINITY), high = in.parameter(1, {"max", "high"}, INFINITY);
    return y(clamp(in[first], low, high));
  };
  operations["hardshrink"] = [](const Given& in) { return y(hardshrink(in[first], in.parameter(0, {"lambd", "lambda"}, 0.5))); };
  operations["softshrink"] = [](const Given& in) { return y(softshrink(in[first], in.parameter(0, {"lambd", "lambda"}, 0.5))); };
  operations["softplus"] = [](const Given& in) {
    return y(softplus(in[first], in.parameter(0, "beta", 1), in.parameter(1, "threshold", 20)));
  };
  operations["threshold"] = [](const Given& in) {
    return y(threshold(in[first], in.parameter(0, {"threshold", "bound"}, 0), in.parameter(1, "value", 0)));
  };
  operations["rrelu"] = operations["rrelu_eval"] = [](const Given& in) {
    return y(rrelu(in[first], in.parameter(0, "lower", 1.0 / 8), in.parameter(1, "upper", 1.0 / 3), in.flag("training")));
  };
  operations["gelu"] = [](const Given& in) {
    const auto form = in.text("approximate", "none");
    if (form != "none" && form != "erf" && form != "tanh") throw Failed("unknown approximation " + form);
    return y(gelu(in[first], form == "tanh" ? Gelu::tanh : Gelu::erf));
  };
  operations["gelu_tanh"] = [](const Given& in) { return y(gelu(in[first], Gelu::tanh)); };
  operations["gelu_erf"] = operations["gelu_none"] = unary(Unary(gelu));
  operations["lerp"] = [](const Given& in) {
    const auto a = in[{"a", "x", "input", "start"}], b = in[{"b", "end", "other"}], weight = in[{"weight", "w", "c"}];
    return y(weight.defined() ? lerp(a, b, weight) : lerp(a, b, in.parameter(0, {"weight", "value"}, 0.5)));
  };
}

void add_ternary(Operations& operations) {
  const Names one{"b", "tensor1"}, other{"c", "tensor2"};
  operations["addcmul"] = [=](const Given& in) { return y(addcmul(in[first], in[one], in[other], in.number("value", 1))); };
  operations["addcdiv"] = [=](const Given& in) { return y(addcdiv(in[first], in[one], in[other], in.number("value", 1))); };
  operations["nan_to_num"] = [](const Given& in) {
    const auto given = [&](const Names& names) { return in.find(names) ? std::optional(in.number(names, 0)) : std::nullopt; };
    return y(nan_to_num(in[first], in.number("nan", 0), given({"posinf", "positive"}), given({"neginf", "negative"})));
  };
}

void add_binary(Operations& operations) {
  // PyTorch's alpha: what the second operand is multiplied with.
  operations["add"] = [](const Given& in) {
    const double alpha = in.number("alpha", 1);
    const auto b = in[second];
    if (!b.defined()) return y(in[first] + alpha * in.parameter(0, {"other", "value"}, 0));
    return y(alpha == 1 ? in[first] + b : in[first] + b * alpha);
  };
  operations["sub"] = operations["subtract"] = [](const Given& in) {
    const double alpha = in.number("alpha", 1);
    const auto b = in[second];
    if (!b.defined()) return y(in[first] - alpha * in.parameter(0, {"other", "value"}, 0));
    return y(alpha == 1 ? in[first] - b : in[first] - b * alpha);
  };
  operations["mul"] = operations["multiply"] = binary(operator*, operator*);
  operations["div"] = operations["divide"] = operations["true_divide"] = binary(operator/, operator/);
  operations["pow"] = [](const Given& in) {
    const auto b = in[second];
    return y(b.defined() ? pow(in[first], b) : pow(in[first], in.parameter(0, {"exponent", "value"}, 2)));
  };
  operations["fmod"] = binary(fmod, fmod);
  operations["atan2"] = operations["arctan2"] = binary(atan2, atan2);
  operations["hypot"] = binary(hypot, hypot);
  operations["logaddexp"] = binary(logaddexp, logaddexp);
  operations["xlogy"] = binary(xlogy, xlogy);
  operations["maximum"] = binary(maximum, maximum);
  operations["minimum"] = binary(minimum, minimum);
  operations["max"] = two_or(operations["maximum"], operations["amax"]);
  operations["min"] = two_or(operations["minimum"], operations["amin"]);
  operations["eq"] = binary(eq, eq);
  operations["ne"] = operations["not_equal"] = binary(not_equal, not_equal);
  operations["lt"] = operations["less"] = binary(less, less);
  operations["le"] = operations["less_equal"] = binary(less_equal, less_equal);
  operations["gt"] = operations["greater"] = binary(greater, greater);
  operations["ge"] = operations["greater_equal"] = binary(greater_equal, greater_equal);
  operations["logical_and"] = [](const Given& in) { return y(logical_and(in.mask(first), in.mask(second))); };
  operations["logical_or"] = [](const Given& in) { return y(logical_or(in.mask(first), in.mask(second))); };
  operations["logical_not"] = [](const Given& in) { return y(logical_not(in.mask(first))); };
}

/// Values made in place.
void add_made(Operations& operations) {
  operations["arange"] = [](const Given& in) {
    const double start = in.number("start", 0), step = in.number("step", 1), end = in.number("end", 0);
    return y(arange(static_cast<std::int64_t>(std::ceil((end - start) / step)), start, step, Dtype::f32));
  };
  operations["linspace"] = [](const Given& in) {
    return y(linspace(in.number("start", 0), in.number("end", 1), in.integer({"steps", "count"}, 100)));
  };
  operations["eye"] = [](const Given& in) { return y(eye(in.integer("n", 1), in.integer("m", -1))); };
  const auto filled = [](double otherwise) {
    return [otherwise](const Given& in) {
      const double value = in.number({"fill_value", "value"}, otherwise);
      if (const auto like = in[first]; like.defined()) return y(full(like.shape(), value));
      return y(full(Shape(in.integers({"size", "shape"}).value_or(std::vector<std::int64_t>{})), value));
    };
  };
  operations["full"] = operations["full_like"] = operations["zeros"] = operations["zeros_like"] = filled(0);
  operations["ones"] = operations["ones_like"] = filled(1);
}

}  // namespace

void add_elementwise(Operations& operations) {
  static const std::map<std::string, Unary> plain{
      {"abs", abs},
      {"absolute", abs},
      {"ceil", ceil},
      {"cos", cos},
      {"detach", stop_gradient},
      {"erf", erf},
      {"exp", exp},
      {"expm1", expm1},
      {"fix", trunc},
      {"floor", floor},
      {"frac", frac},
      {"hardsigmoid", hardsigmoid},
      {"hardswish", hardswish},
      {"isnan", is_nan},
      {"log", log},
      {"log1p", log1p},
      {"log2", log2},
      {"logsigmoid", log_sigmoid},
      {"mish", mish},
      {"neg", [](const Tensor& x) { return -x; }},
      {"negative", [](const Tensor& x) { return -x; }},
      {"reciprocal", reciprocal},
      {"relu", relu},
      {"relu6", relu6},
      {"round", round},
      {"rsqrt", rsqrt},
      {"selu", selu},
      {"sigmoid", sigmoid},
      {"sgn", sign},
      {"sign", sign},
      {"silu", silu},
      {"sin", sin},
      {"softsign", softsign},
      {"sqrt", sqrt},
      {"square", square},
      {"swish", silu},
      {"tanh", tanh},
      {"tanhshrink", tanhshrink},
      {"trunc", trunc},
  };
  for (const auto& [name, function] : plain) operations[name] = unary(function);
  operations["prelu"] = [](const Given& in) { return y(prelu(in[first], in["weight"])); };
  operations["glu"] = [](const Given& in) { return y(glu(in[first], in.dim(-1))); };
  operations["softmax"] = [](const Given& in) { return y(softmax(in[first], in.dim(-1))); };
  operations["softmin"] = [](const Given& in) { return y(softmin(in[first], in.dim(-1))); };
  operations["log_softmax"] = [](const Given& in) { return y(log_softmax(in[first], in.dim(-1))); };
  add_with_numbers(operations);
  add_binary(operations);
  add_ternary(operations);
  add_made(operations);
}

}  // namespace clnet::torch
