#include "lib/graph/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "clnet/error.h"
#include "lib/graph/autocast.h"

namespace clnet {

namespace {
std::atomic<std::int64_t> nodes_alive{0};
std::atomic<std::uint64_t> nodes_made{0};

/// The references of a freed node. Functions in operations and effects may hold graph, too.
struct Remains {
  std::shared_ptr<const Op> op;
  Tensors inputs;
  std::vector<std::shared_ptr<Effect>> effects;
};

/// Of the nodes that this thread is freeing: they belong to the outermost destructor, which drops them one by one.
thread_local std::vector<Remains>* remains_now = nullptr;

}  // namespace

void (*node_made)(const Tensor& first_output) = nullptr;

Tensors Op::vjp(const Tensors&, const Tensors&, const Tensors&) const {
  throw Unsupported(fmt::format("{}: has no gradient", name()));
}

Expression Op::expr(const Specs&) const { return {}; }

std::optional<Alias> Op::alias(const Specs&, std::size_t) const { return std::nullopt; }
FusionHints Op::fusion(const Specs&) const { return {}; }
TuningHints Op::tuning(const Specs&) const { return {.measured = false}; }
Tensors Op::at_length(const Specs&, std::int64_t, std::int64_t) const { return {}; }

void Op::lower(exec::Recorder&) const { throw Unsupported(fmt::format("{}: cannot be computed on a device", name())); }

std::vector<Tensor> uncounted(std::span<const Tensor> tensors) {
  std::vector<Tensor> result;
  result.reserve(tensors.size());
  for (const auto& tensor : tensors) result.push_back(uncounted(tensor));
  return result;
}

Specs specs_of(const Tensors& tensors) {
  Specs specs;
  specs.reserve(tensors.size());
  for (const auto& tensor : tensors) specs.push_back(tensor.spec());
  return specs;
}

Node::Node(std::shared_ptr<const Op> operation, Tensors in, Specs out)
    : op(std::move(operation)),
      inputs(std::move(in)),
      outputs(std::move(out)),
      values(outputs.size()),
      order(nodes_made++),
      scope(scope_now()) {
  if (op) find_aliases(specs_of(inputs));
  count_inputs();
  ++nodes_alive;
}

Node::Node(std::shared_ptr<const Op> operation, Tensors in, Specs out, const Specs& input_specs)
    : op(std::move(operation)),
      inputs(std::move(in)),
      outputs(std::move(out)),
      values(outputs.size()),
      order(nodes_made++),
      scope(scope_now()) {
  find_aliases(input_specs);
  count_inputs();
  ++nodes_alive;
}

Node::Node(const Node& other, Tensors in)
    : op(other.op),
      inputs(std::move(in)),
      outputs(other.outputs),
      aliases(other.aliases),
      values(outputs.size()),
      order(nodes_made++),
      scope(other.scope) {
  count_inputs();
  ++nodes_alive;
}

void Node::count_inputs() {
  for (auto& input : inputs)
    if (input.defined()) detail::access::count_as(input, detail::Counted::as_input);
}

void Node::find_aliases(const Specs& specs) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto alias = op->alias(specs, i);
    if (!alias) continue;
    const auto& base = specs.at(alias->input);
    if (base.dtype != outputs[i].dtype || alias->offset < 0 || alias->offset + outputs[i].shape.numel() > base.shape.numel())
      throw Error(fmt::format("{}: output {} ({}) is no range of {} from element {} on", op->name(), i, to_string(outputs[i]),
                              to_string(base), alias->offset));
    aliases.resize(outputs.size());
    aliases[i] = alias;
    ++count;
  }
  // lower() is skipped where all outputs are views. With only some, it would get memory that it must not write.
  if (count != 0 && count != outputs.size())
    throw Error(fmt::format("{}: {} of its {} outputs are ranges of inputs; an operation has only such outputs, or none",
                            op->name(), count, outputs.size()));
}

bool Node::is_view() const { return !aliases.empty(); }

Node::~Node() {
  --nodes_alive;
  if (!op && inputs.empty() && effects.empty()) return;
  Remains mine{std::move(op), std::move(inputs), std::move(effects)};
  if (remains_now) {
    remains_now->push_back(std::move(mine));
    return;
  }
  std::vector<Remains> pending;
  pending.push_back(std::move(mine));
  remains_now = &pending;
  while (!pending.empty()) {
    const Remains last = std::move(pending.back());
    pending.pop_back();
  }
  remains_now = nullptr;
}

std::span<const Tensor> differentiated(const Node& node) {
  return node.op->differentiated().value_or(std::span<const Tensor>(node.inputs));
}

std::string_view solver_list(const Node& node) {
  const auto list = node.op->tuning(specs_of(node.inputs)).list;
  return list.empty() ? node.op->name() : list;
}

std::uint64_t Node::next_sequence() { return nodes_made; }
std::int64_t Node::alive() { return nodes_alive; }

namespace {

/// The alias of a tensor. Null where the program asked for its value, where it is computed, or belongs to a slot: another thread
/// may be cutting that from its inputs.
const Alias* alias_of(const Tensor& tensor) {
  const auto output = static_cast<std::size_t>(output_of(tensor));
  const auto& node = *node_of(tensor);
  return node.aliases.empty() || node.slot != 0 || node.values[output].is_asked() || !node.aliases[output]
             ? nullptr
             : &*node.aliases[output];
}

}  // namespace

Range root_of(const Tensor& tensor) {
  Range range{tensor, 0};
  while (const auto* alias = alias_of(range.tensor)) {
    range.offset += alias->offset;
    range.tensor = Tensor(node_of(range.tensor)->inputs[alias->input]);
  }
  return range;
}

Tensor source_of(const Tensor& tensor) {
  Tensor source = tensor;
  while (const auto* alias = alias_of(source)) {
    const auto& input = node_of(source)->inputs[alias->input];
    if (input.numel() != source.numel()) break;
    source = Tensor(input);
  }
  return source;
}

Tensor make_leaf(Spec spec, std::shared_ptr<Value> value) {
  auto node = std::make_shared<Node>(nullptr, Tensors{}, Specs{std::move(spec)});
  node->values[0].set(std::move(value));
  return tensor_of(std::move(node), 0);
}

Tensors apply_all(std::shared_ptr<const Op> op, Tensors inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].defined()) throw Error(fmt::format("{}: input {} is an undefined tensor", op->name(), i));
  if (autocasting()) autocast(*op, inputs);
  const auto specs = specs_of(inputs);
  Specs outputs;
  try {
    outputs = op->infer(specs);
  } catch (Error& error) {
    if (const auto where = to_string(scope_now()); !where.empty()) error.place(where);
    throw;
  }
  auto node = std::make_shared<Node>(std::move(op), std::move(inputs), std::move(outputs), specs);
  const auto count = node->outputs.size();
  Tensors result;
  result.reserve(count);
  for (std::size_t i = 0; i + 1 < count; ++i) result.push_back(tensor_of(node, static_cast<int>(i)));
  if (count > 0) result.push_back(tensor_of(std::move(node), static_cast<int>(count - 1)));
  if (node_made) node_made(result.front());
  return result;
}

Tensor apply(std::shared_ptr<const Op> op, Tensors inputs) { return std::move(apply_all(std::move(op), std::move(inputs))[0]); }

}  // namespace clnet
