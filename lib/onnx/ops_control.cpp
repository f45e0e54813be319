// Control flow. Only conditions and trip counts are read; each turn of a loop is evaluated, so that all turns share a plan.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"
#include "lib/onnx/program.h"
#include "lib/onnx/runner.h"

namespace clnet::onnx {
namespace {

const Program& body_of(const Call& call, std::string_view name) {
  std::size_t at = 0;
  for (const auto& attribute : call.instruction().node->attributes) {
    if (attribute.name == name && !attribute.graphs.empty()) return *call.instruction().graphs[at];
    at += attribute.graphs.size();
  }
  call.fail(fmt::format("has no graph {}", name));
}

Outputs if_of(const Call& call) {
  if (call.shape(0).numel() != 1) call.fail("the condition has several elements");
  const bool condition = call.integer(0) != 0;
  return call.runner().run_body(body_of(call, condition ? "then_branch" : "else_branch"), {});
}

/// Computes what a turn of a loop gives, so that the next one begins with values.
void settle(std::span<const RunValue> values) {
  std::vector<Tensor> pending;
  for (const auto& value : values)
    if (value.is_there() && !value.is_sequence() && !value.host()) pending.push_back(value.tensor());
  if (pending.empty()) return;
  eval(pending);
}

RunValue stacked(const Call& call, const std::vector<RunValue>& turns, int axis) {
  std::vector<Tensor> parts;
  for (const auto& turn : turns) parts.push_back(turn.tensor());
  return call.give_as(stack(parts, axis), turns[0].type());
}

Outputs loop(const Call& call) {
  const auto& body = body_of(call, "body");
  const auto limit = call.has(0) ? call.integer(0) : std::numeric_limits<std::int64_t>::max();
  bool goes_on = call.has(1) ? call.integer(1) != 0 : true;
  std::vector<RunValue> carried;
  for (std::size_t i = 2; i < call.count(); ++i) carried.push_back(call.in(i));
  if (body.outputs.size() < carried.size() + 1)
    call.fail(fmt::format("the body gives {} values for {} carried ones", body.outputs.size(), carried.size()));
  const auto scanned = body.outputs.size() - carried.size() - 1;
  std::vector<std::vector<RunValue>> turns(scanned);
  for (std::int64_t turn = 0; goes_on && turn < limit; ++turn) {
    call.runner().options().check();
    std::vector<RunValue> inputs;
    inputs.emplace_back(HostTensor::of(ElementType::i64, {}, std::vector<std::int64_t>{turn}));
    inputs.emplace_back(HostTensor::of(ElementType::boolean, {}, std::vector<std::int64_t>{1}));
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    auto outputs = call.runner().run_body(body, inputs);
    if (call.runner().options().may_read) settle(outputs);
    const auto& condition = outputs[0];
    if (condition.is_there()) {
      if (condition.is_sequence() || condition.shape().numel() != 1) call.fail("the condition is no single value");
      if (condition.host())
        goes_on = condition.host()->integers().at(0) != 0;
      else if (!call.runner().options().may_read && !condition.is_constant())
        throw DependsOnData("Loop: the condition depends on data");
      else
        goes_on = condition.tensor().item<bool>();
    }
    for (std::size_t i = 0; i < carried.size(); ++i) carried[i] = outputs[i + 1];
    for (std::size_t i = 0; i < scanned; ++i) turns[i].push_back(outputs[carried.size() + 1 + i]);
  }
  Outputs out = std::move(carried);
  for (const auto& turn : turns) {
    if (turn.empty()) call.refuse("a scan output of a loop without a turn");
    out.push_back(stacked(call, turn, 0));
  }
  return out;
}

Outputs scan(const Call& call) {
  const auto& body = body_of(call, "body");
  if (call.opset() < 9) call.refuse("the definition of operator set 8");
  const auto scanned = static_cast<std::size_t>(call.attribute("num_scan_inputs", std::int64_t{0}));
  if (scanned < 1 || scanned > call.count()) call.fail(fmt::format("num_scan_inputs is {} of {} inputs", scanned, call.count()));
  const auto states = call.count() - scanned;
  if (body.outputs.size() < states) call.fail("the body gives fewer values than there are states");
  const auto given = body.outputs.size() - states;
  const auto list = [&](std::string_view name, std::size_t count) {
    auto values = call.integers(name);
    if (values.empty()) values.assign(count, 0);
    if (values.size() != count) call.fail(fmt::format("{} has {} numbers instead of {}", name, values.size(), count));
    return values;
  };
  const auto in_axes = list("scan_input_axes", scanned), in_directions = list("scan_input_directions", scanned);
  const auto out_axes = list("scan_output_axes", given), out_directions = list("scan_output_directions", given);
  std::vector<RunValue> carried;
  for (std::size_t i = 0; i < states; ++i) carried.push_back(call.in(i));
  std::int64_t length = -1;
  for (std::size_t i = 0; i < scanned; ++i) {
    const auto extent = call.shape(states + i)[Call::axis(in_axes[i], call.shape(states + i).rank())];
    if (length >= 0 && extent != length) call.fail(fmt::format("inputs of {} and {} turns", length, extent));
    length = extent;
  }
  if (length == 0) call.refuse("no turn");
  std::vector<std::vector<RunValue>> turns(given);
  for (std::int64_t turn = 0; turn < length; ++turn) {
    call.runner().options().check();
    std::vector<RunValue> inputs = carried;
    for (std::size_t i = 0; i < scanned; ++i) {
      const auto& x = call.x(states + i);
      const auto at = in_directions[i] != 0 ? length - 1 - turn : turn;
      inputs.push_back(call.give(select(x, Call::axis(in_axes[i], x.rank()), at), states + i));
    }
    auto outputs = call.runner().run_body(body, inputs);
    for (std::size_t i = 0; i < states; ++i) carried[i] = outputs[i];
    for (std::size_t i = 0; i < given; ++i) turns[i].push_back(outputs[states + i]);
  }
  Outputs out = std::move(carried);
  for (std::size_t i = 0; i < given; ++i) {
    if (out_directions[i] != 0) std::reverse(turns[i].begin(), turns[i].end());
    out.push_back(stacked(call, turns[i], Call::axis(out_axes[i], turns[i][0].shape().rank() + 1)));
  }
  return out;
}

}  // namespace

std::vector<Operator> control_operators() {
  using enum Role;
  return {
      {"If", 1, if_of},
      {"Loop", 1, loop, {structure, structure, data}},
      {"Scan", 8, scan},
  };
}

}  // namespace clnet::onnx
