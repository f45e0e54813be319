#include "lib/graph/node.h"

#include <fmt/format.h>

#include <atomic>

#include "clnet/error.h"

namespace clnet {

namespace {
std::atomic<std::int64_t> nodes_alive{0};
std::atomic<std::uint64_t> nodes_made{0};
}  // namespace

void (*node_made)(const Tensor& first_output) = nullptr;

Tensors Op::vjp(const Tensors&, const Tensors&, const Tensors&) const {
  throw Unsupported(fmt::format("{}: has no gradient", name()));
}

std::string Op::expr(const Specs&) const { return {}; }

void Op::lower(exec::Recorder&) const { throw Unsupported(fmt::format("{}: cannot be computed on a device", name())); }

Node::Node(std::shared_ptr<const Op> operation, Tensors in, Specs out)
    : op(std::move(operation)), inputs(std::move(in)), outputs(std::move(out)), values(outputs.size()), sequence(nodes_made++) {
  ++nodes_alive;
}

Node::~Node() {
  --nodes_alive;
  Tensors pending = std::move(inputs);
  while (!pending.empty()) {
    auto node = pending.back().node();
    pending.pop_back();
    if (node.use_count() == 1) {
      for (auto& input : node->inputs) pending.push_back(std::move(input));
      node->inputs.clear();
    }
  }
}

std::uint64_t Node::next_sequence() { return nodes_made; }
std::int64_t Node::alive() { return nodes_alive; }

Tensor make_leaf(Spec spec, std::shared_ptr<Value> value) {
  auto node = std::make_shared<Node>(nullptr, Tensors{}, Specs{std::move(spec)});
  node->values[0] = std::move(value);
  return {std::move(node), 0};
}

Tensors apply_all(std::shared_ptr<const Op> op, Tensors inputs) {
  Specs specs;
  specs.reserve(inputs.size());
  for (const auto& input : inputs) {
    if (!input.defined()) throw Error(fmt::format("{}: input {} is an undefined tensor", op->name(), specs.size()));
    specs.push_back(input.spec());
  }
  auto outputs = op->infer(specs);
  auto node = std::make_shared<Node>(std::move(op), std::move(inputs), std::move(outputs));
  Tensors result;
  for (std::size_t i = 0; i < node->outputs.size(); ++i) result.emplace_back(node, static_cast<int>(i));
  if (node_made) node_made(result.front());
  return result;
}

Tensor apply(std::shared_ptr<const Op> op, Tensors inputs) { return std::move(apply_all(std::move(op), std::move(inputs))[0]); }

}  // namespace clnet
