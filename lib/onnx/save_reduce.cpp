// How reductions, cumulative operations and products of matrices are written.
#include <algorithm>
#include <numeric>

#include "lib/onnx/exporter.h"
#include "lib/onnx/write.h"

namespace clnet::onnx {
namespace {

void reduction(SaveCall& call) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"sum", "ReduceSum"}, {"mean", "ReduceMean"}, {"prod", "ReduceProd"}, {"max", "ReduceMax"}, {"min", "ReduceMin"}};
  std::string_view op;
  for (const auto& [name, named] : names)
    if (name == call.name()) op = named;
  const bool keeps = call.flag("keepdim");
  auto dims = call.integers("dims");
  std::string x = call.in(0);
  // Sums of narrow integers are wide, and extremes of bool are logic.
  const auto result = call.out().dtype;
  const bool is_bool = call.dtype() == Dtype::boolean;
  // Few programs reduce bf16.
  const auto inner = is_bool && result == Dtype::boolean ? Dtype::i32 : result == Dtype::bf16 ? Dtype::f32 : result;
  const auto give = [&](const std::string& y) { call.give(inner == result ? y : call.cast(y, result)); };
  if (call.dtype() != inner) x = call.cast(x, inner);
  for (auto& dim : dims) dim = dim < 0 ? dim + call.rank() : dim;
  // Of all pixels: an operator that more programs know.
  auto pixels = dims;
  std::sort(pixels.begin(), pixels.end());
  bool whole = keeps && call.rank() > 2 && static_cast<int>(pixels.size()) == call.rank() - 2;
  for (std::size_t i = 0; i < pixels.size(); ++i) whole = whole && pixels[i] == static_cast<std::int64_t>(i) + 2;
  if (whole && (op == "ReduceMean" || (op == "ReduceMax" && is_floating(type_of(result)))))
    return give(call.op(op == "ReduceMean" ? "GlobalAveragePool" : "GlobalMaxPool", {x}));
  std::vector<std::string> inputs{x};
  if (call.rank() == 0) dims.clear();
  if (!dims.empty()) inputs.push_back(call.list(dims));
  give(call.op(op, inputs, {write_attribute("keepdims", std::int64_t{keeps ? 1 : 0})}));
}

void arg(SaveCall& call) {
  const auto op = call.name() == "argmax" ? "ArgMax" : "ArgMin";
  if (call.rank() == 0) call.refuse("of a scalar has no operator of ONNX");
  const auto x = call.dtype() == Dtype::boolean ? call.in_as(0, Dtype::u8) : call.in(0);
  call.give(call.op(
      op, {x},
      {write_attribute("axis", call.integer("dim")), write_attribute("keepdims", std::int64_t{call.flag("keepdim") ? 1 : 0})}));
}

void cumulated(SaveCall& call) {
  std::vector<std::string> attributes;
  if (call.flag("backwards")) attributes.push_back(write_attribute("reverse", std::int64_t{1}));
  const auto axis = call.scalar(static_cast<double>(call.integer("dim")), Dtype::i64);
  call.give(call.op("CumSum", {call.in(0), axis}, std::move(attributes)));
}

std::vector<std::int64_t> last_two_turned(int rank) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return order;
}

void product(SaveCall& call) {
  const bool ta = call.flag("transpose_a"), tb = call.flag("transpose_b");
  const bool plain = call.rank(0) == 2 && call.rank(1) == 2;
  if (plain && (ta || tb || call.has(2))) {
    std::vector<std::string> attributes;
    if (ta) attributes.push_back(write_attribute("transA", std::int64_t{1}));
    if (tb) attributes.push_back(write_attribute("transB", std::int64_t{1}));
    return call.give(call.op("Gemm", {call.in(0), call.in(1), call.in(2)}, std::move(attributes)));
  }
  const auto a = ta ? call.transpose(call.in(0), last_two_turned(call.rank(0))) : call.in(0);
  const auto b = tb ? call.transpose(call.in(1), last_two_turned(call.rank(1))) : call.in(1);
  const auto y = call.op("MatMul", {a, b});
  call.give(call.has(2) ? call.op("Add", {y, call.in(2)}) : y);
}

}  // namespace

std::vector<Saver> reduce_savers() {
  return {{"sum", reduction}, {"mean", reduction}, {"prod", reduction},   {"max", reduction}, {"min", reduction},
          {"argmax", arg},    {"argmin", arg},     {"cumsum", cumulated}, {"matmul", product}};
}

}  // namespace clnet::onnx
