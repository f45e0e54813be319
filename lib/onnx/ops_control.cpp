// Control flow. Only conditions and trip counts are read; each turn of a loop is evaluated, so that all turns share a plan.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "clnet/ops/elementwise.h"
#include "clnet/ops/shape.h"
#include "lib/onnx/operators.h"
#include "lib/onnx/program.h"
#include "lib/onnx/runner.h"

namespace clnet::onnx {
namespace {

const Program& body_of(const Call& call, std::string_view name) {
  const auto* body = call.graph(name);
  if (!body) call.fail(fmt::format("has no graph {}", name));
  return *body;
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

/// What all turns give for the body's output `output`, along a new axis. Without a turn it is empty, of the declared type.
RunValue stacked(const Call& call, const std::vector<RunValue>& turns, std::size_t output, std::int64_t axis) {
  if (!turns.empty()) {
    std::vector<Tensor> parts;
    for (const auto& turn : turns) parts.push_back(turn.tensor());
    return call.give_as(stack(parts, Call::axis(axis, parts[0].rank() + 1)), turns[0].type());
  }
  const auto* info = call.graph_info("body");
  if (!info || output >= info->outputs.size() || info->outputs[output].type.element == ElementType::undefined)
    call.refuse("an output without a turn, of which the body declares no type");
  const auto& type = info->outputs[output].type;
  std::vector<std::int64_t> extents;
  if (type.shape)
    for (const auto& extent : *type.shape) extents.push_back(extent.value.value_or(0));
  extents.insert(extents.begin() + Call::axis(axis, static_cast<int>(extents.size()) + 1), 0);
  const auto stored = call.runner().stored(type.element);
  return {zeros(Shape(extents), dtype_of(stored)), stored};
}

Outputs loop(const Call& call) {
  const auto& body = body_of(call, "body");
  const auto limit = call.has(0) ? call.integer(0) : std::numeric_limits<std::int64_t>::max();
  bool goes_on = call.has(1) ? call.integer(1) != 0 : true;
  std::vector<RunValue> carried;
  for (std::size_t i = 2; i < call.count(); ++i) carried.push_back(call.maybe(i));
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
  const auto first = out.size() + 1;
  for (std::size_t i = 0; i < scanned; ++i) out.push_back(stacked(call, turns[i], first + i, 0));
  return out;
}

/// What a scan goes over, and how.
struct Scanned {
  std::vector<RunValue> states, inputs;
  std::vector<std::int64_t> in_axes, in_directions, out_axes, out_directions;
};

Outputs scan_of(const Call& call, const Program& body, const Scanned& over) {
  const auto states = over.states.size(), given = body.outputs.size() - states;
  auto carried = over.states;
  std::int64_t length = -1;
  for (std::size_t i = 0; i < over.inputs.size(); ++i) {
    const auto& shape = over.inputs[i].shape();
    const auto extent = shape[Call::axis(over.in_axes[i], shape.rank())];
    if (length >= 0 && extent != length) call.fail(fmt::format("inputs of {} and {} turns", length, extent));
    length = extent;
  }
  std::vector<std::vector<RunValue>> turns(given);
  for (std::int64_t turn = 0; turn < length; ++turn) {
    call.runner().options().check();
    std::vector<RunValue> inputs = carried;
    for (std::size_t i = 0; i < over.inputs.size(); ++i) {
      const auto& x = over.inputs[i].tensor();
      const auto at = over.in_directions[i] != 0 ? length - 1 - turn : turn;
      inputs.push_back(call.give_as(select(x, Call::axis(over.in_axes[i], x.rank()), at), over.inputs[i].type()));
    }
    auto outputs = call.runner().run_body(body, inputs);
    for (std::size_t i = 0; i < states; ++i) carried[i] = outputs[i];
    for (std::size_t i = 0; i < given; ++i) turns[i].push_back(outputs[states + i]);
  }
  Outputs out = std::move(carried);
  for (std::size_t i = 0; i < given; ++i) {
    if (over.out_directions[i] != 0) std::reverse(turns[i].begin(), turns[i].end());
    out.push_back(stacked(call, turns[i], states + i, over.out_axes[i]));
  }
  return out;
}

std::vector<std::int64_t> list_of(const Call& call, std::string_view name, std::size_t count) {
  auto values = call.integers(name);
  if (values.empty()) values.assign(count, 0);
  if (values.size() != count) call.fail(fmt::format("{} has {} numbers instead of {}", name, values.size(), count));
  return values;
}

/// `first` inputs come before the states.
std::size_t scan_states(const Call& call, const Program& body, std::size_t first) {
  const auto scanned = call.attribute("num_scan_inputs", std::int64_t{0});
  if (scanned < 1 || std::cmp_greater(scanned + static_cast<std::int64_t>(first), call.count()))
    call.fail(fmt::format("num_scan_inputs is {} of {} inputs", scanned, call.count()));
  const auto states = call.count() - first - static_cast<std::size_t>(scanned);
  if (body.outputs.size() < states) call.fail("the body gives fewer values than there are states");
  return states;
}

Outputs scan(const Call& call) {
  const auto& body = body_of(call, "body");
  const auto states = scan_states(call, body, 0), scanned = call.count() - states, given = body.outputs.size() - states;
  Scanned over;
  for (std::size_t i = 0; i < call.count(); ++i) (i < states ? over.states : over.inputs).push_back(call.in(i));
  over.in_axes = list_of(call, "scan_input_axes", scanned);
  over.in_directions = list_of(call, "scan_input_directions", scanned);
  over.out_axes = list_of(call, "scan_output_axes", given);
  over.out_directions = list_of(call, "scan_output_directions", given);
  return scan_of(call, body, over);
}

/// Operator set 8: each element of a batch is scanned, as far as its length goes. What is behind are zeros.
Outputs scan_of_batch(const Call& call) {
  const auto& body = body_of(call, "body");
  const auto states = scan_states(call, body, 1), scanned = call.count() - 1 - states, given = body.outputs.size() - states;
  const auto batch = call.shape(1).rank() > 0 ? call.shape(1)[0] : 0;
  const auto longest = call.shape(1 + states).rank() > 1 ? call.shape(1 + states)[1] : 0;
  const auto lengths = call.has(0) ? call.integers(0) : std::vector<std::int64_t>(static_cast<std::size_t>(batch), longest);
  if (batch < 1 || std::cmp_not_equal(lengths.size(), batch)) call.fail(fmt::format("{} lengths of {}", lengths.size(), batch));
  std::vector<std::vector<RunValue>> by_element;
  for (std::int64_t element = 0; element < batch; ++element) {
    const auto length = lengths[static_cast<std::size_t>(element)];
    if (length < 0 || length > longest) call.fail(fmt::format("a length of {} of {}", length, longest));
    Scanned over;
    for (std::size_t i = 1; i < call.count(); ++i) {
      const bool is_state = i <= states;
      if (call.shape(i).rank() < (is_state ? 1 : 2) || call.shape(i)[0] != batch)
        call.fail(fmt::format("input {} is {}", i, to_string(call.shape(i))));
      const Tensor own = select(call.x(i), 0, element);
      (is_state ? over.states : over.inputs).push_back(call.give(is_state ? own : slice(own, 0, 0, length), i));
    }
    over.in_axes.assign(scanned, 0);
    over.in_directions = list_of(call, "directions", scanned);
    over.out_axes.assign(given, 0);
    over.out_directions.assign(given, 0);
    by_element.push_back(scan_of(call, body, over));
    for (std::size_t i = states; i < by_element.back().size(); ++i) {
      const Tensor& y = by_element.back()[i].tensor();
      std::vector<std::int64_t> none(static_cast<std::size_t>(y.rank())), more(none);
      more[0] = longest - length;
      if (longest > length) by_element.back()[i] = call.give_as(pad(y, none, more, 0), by_element.back()[i].type());
    }
  }
  Outputs out;
  for (std::size_t i = 0; i < states + given; ++i) {
    std::vector<Tensor> parts;
    for (const auto& element : by_element) parts.push_back(element[i].tensor());
    out.push_back(call.give_as(stack(parts, 0), by_element[0][i].type()));
  }
  return out;
}

}  // namespace

std::vector<Operator> control_operators() {
  using enum Role;
  return {
      {"If", 1, if_of},
      {"Loop", 1, loop, {structure, structure, data}},
      {"Scan", 8, scan_of_batch, {structure, data}},
      {"Scan", 9, scan},
  };
}

}  // namespace clnet::onnx
