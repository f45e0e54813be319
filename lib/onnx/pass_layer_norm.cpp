// Layer norm as exporters wrote it before operator set 17: mean, difference, mean of squares, root, quotient, weight and bias.
#include "clnet/ops/norm.h"
#include "lib/onnx/passes.h"

namespace clnet::onnx {
namespace {

/// A mean along axes, which later operator sets have as an input.
struct Mean {
  std::size_t index;
  Slot of;
  Slot axes_slot = -1;
  std::vector<std::int64_t> axes = {};
};

std::optional<Mean> mean_of(const Uses& uses, Slot slot) {
  const auto index = uses.maker(slot, "ReduceMean");
  if (!index) return std::nullopt;
  const auto& instruction = uses.at(*index);
  if (instruction.inputs.empty()) return std::nullopt;
  for (const auto& attribute : instruction.node->attributes)
    if ((attribute.name == "keepdims" && attribute.integer == 0) || !attribute.reference.empty()) return std::nullopt;
  Mean out{*index, instruction.inputs[0]};
  if (instruction.inputs.size() > 1 && instruction.inputs[1] >= 0)
    out.axes_slot = instruction.inputs[1];
  else if (auto axes = integers_of(instruction, "axes"))
    out.axes = std::move(*axes);
  else
    return std::nullopt;
  return out;
}

/// Whether a mean is that of the last dimension: by its attribute, or its input if there is one.
bool is_of_last(const Call& call, const std::vector<std::int64_t>& axes, std::size_t input) {
  const auto rank = call.shape(0).rank();
  const auto fits = [rank](const std::vector<std::int64_t>& list) {
    return list.size() == 1 && (list[0] == -1 || list[0] == rank - 1);
  };
  if (!call.has(input)) return fits(axes);
  return call.in(input).host() && fits(call.integers(input));
}

/// The inputs of the pattern.
struct NormInput {
  enum Place : std::size_t { x, eps, two, first_axes, second_axes, weight, bias };
};

}  // namespace

std::optional<Match> match_layer_norm(const Uses& uses, std::size_t last) {
  Match out;
  out.inputs.assign(7, -1);
  // From the end: the bias, the weight, the quotient. Either may be missing.
  auto at = std::optional(last);
  const auto take = [&](std::string_view op, NormInput::Place input) {
    if (!at || !uses.is(*at, op)) return true;
    const auto operands = uses.with_fixed(*at);
    if (!operands) return false;
    out.parts.push_back(*at);
    out.inputs[input] = operands->second;
    at = uses.maker(operands->first, op == "Add" ? "Mul" : "Div");
    if (!at && op == "Add") at = uses.maker(operands->first, "Div");
    return at.has_value();
  };
  if (!take("Add", NormInput::bias) || !take("Mul", NormInput::weight) || !at || !uses.is(*at, "Div")) return std::nullopt;
  const auto& quotient = uses.at(*at).inputs;
  if (quotient.size() != 2) return std::nullopt;
  out.parts.push_back(*at);
  const auto difference = uses.maker(quotient[0], "Sub");
  const auto root = uses.maker(quotient[1], "Sqrt");
  if (!difference || !root) return std::nullopt;
  const auto sum = uses.maker(uses.input(*root, 0), "Add");
  if (!sum) return std::nullopt;
  const auto terms = uses.with_fixed(*sum);
  const auto variance = terms ? mean_of(uses, terms->first) : std::nullopt;
  const auto mean = mean_of(uses, uses.input(*difference, 1));
  if (!variance || !mean || mean->of != uses.input(*difference, 0)) return std::nullopt;
  auto square = uses.maker(variance->of, "Pow");
  if (square) {
    out.inputs[NormInput::two] = uses.input(*square, 1);
    if (!uses.is_fixed(out.inputs[NormInput::two])) return std::nullopt;
  } else {
    square = uses.maker(variance->of, "Mul");
    if (!square || uses.input(*square, 1) != quotient[0]) return std::nullopt;
  }
  if (uses.input(*square, 0) != quotient[0]) return std::nullopt;
  out.parts.insert(out.parts.end(), {*difference, *root, *sum, variance->index, mean->index, *square});
  out.inputs[NormInput::x] = mean->of;
  out.inputs[NormInput::eps] = terms->second;
  out.inputs[NormInput::first_axes] = mean->axes_slot;
  out.inputs[NormInput::second_axes] = variance->axes_slot;
  out.run = [first = mean->axes, second = variance->axes](const Call& call) -> std::optional<Outputs> {
    const Tensor& of = call.x(NormInput::x);
    const auto epsilon = number_of(call, NormInput::eps);
    if (of.rank() < 1 || !is_floating(call.type(NormInput::x)) || !epsilon || *epsilon < 0 ||
        call.shape(NormInput::eps).rank() > of.rank() || (call.has(NormInput::two) && !is_number(call, NormInput::two, 2)) ||
        !is_of_last(call, first, NormInput::first_axes) || !is_of_last(call, second, NormInput::second_axes))
      return std::nullopt;
    const Shape inner{of.size(-1)};
    for (const auto input : {NormInput::weight, NormInput::bias})
      if (call.has(input) && !(call.shape(input) == inner && call.type(input) == call.type(NormInput::x))) return std::nullopt;
    return Outputs{call.give(layer_norm(of, 1, call.optional(NormInput::weight), call.optional(NormInput::bias), *epsilon))};
  };
  return out;
}

}  // namespace clnet::onnx
