#include <fmt/format.h>

#include <algorithm>
#include <memory_resource>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "clnet/autocast.h"
#include "clnet/autograd.h"
#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/autograd/arrivals.h"
#include "lib/graph/capture.h"
#include "lib/graph/node.h"
#include "lib/graph/slot.h"

namespace clnet {

namespace {

using NodePtr = std::shared_ptr<Node>;

/// Values of slots are leaves, even pending ones.
bool is_leaf(const Node& node) { return node.slot != 0 || !node.op; }

/// The tensors that gradients flow to.
std::span<const Tensor> flows_to(const Node& node) { return is_leaf(node) ? std::span<const Tensor>() : differentiated(node); }

/// The nodes that lead from `outputs` to one of `inputs`, each after all nodes that it depends on.
std::vector<NodePtr> path(std::span<const Tensor> outputs, std::span<const Tensor> inputs) {
  std::pmr::monotonic_buffer_resource memory;
  std::pmr::unordered_set<const Node*> targets(&memory);
  for (const auto& input : inputs) targets.insert(node_of(input).get());
  std::pmr::unordered_map<const Node*, bool> leads(&memory);  // to a target; present once a node was seen
  std::vector<NodePtr> order;
  struct Visit {
    NodePtr node;
    std::size_t next = 0;
  };
  std::vector<Visit> stack;
  for (const auto& output : outputs) {
    if (leads.count(node_of(output).get())) continue;
    leads[node_of(output).get()] = targets.count(node_of(output).get()) != 0;
    stack.push_back({node_of(output)});
    while (!stack.empty()) {
      auto& visit = stack.back();
      if (const auto from = flows_to(*visit.node); visit.next < from.size()) {
        const auto& child = node_of(from[visit.next++]);
        if (leads.try_emplace(child.get(), targets.count(child.get()) != 0).second) stack.push_back({child});
        continue;
      }
      bool& mine = leads[visit.node.get()];
      for (const auto& input : flows_to(*visit.node)) mine = mine || leads[node_of(input).get()];
      if (mine) order.push_back(std::move(visit.node));
      stack.pop_back();
    }
  }
  return order;
}

/// Recomputes the nodes of checkpoint(): copies, made when the first gradient needs one of them.
class Recomputed {
 public:
  /// The tensors that a gradient of `reader` reads in place of values: copies within the same checkpoint.
  Tensors in_place_of(std::span<const Tensor> values, const Node& reader) {
    Tensors result;
    for (const auto& value : values) {
      const auto& node = node_of(value);
      const bool known = node->values[static_cast<std::size_t>(output_of(value))].is_asked();
      const bool again = node->op && !known && node->checkpoint != 0 && node->checkpoint == reader.checkpoint;
      result.push_back(again ? tensor_of(copy_of(node), output_of(value)) : value);
    }
    return result;
  }

 private:
  NodePtr copy_of(const NodePtr& wanted) {
    // Depth first without recursion: networks may be deep.
    std::vector<NodePtr> stack{wanted};
    while (!stack.empty()) {
      const auto node = stack.back();
      const auto missing = std::find_if(node->inputs.begin(), node->inputs.end(), [&](const Tensor& input) {
        return belongs(input, *node) && !copies_.count(node_of(input).get());
      });
      if (missing != node->inputs.end()) {
        stack.push_back(node_of(*missing));
        continue;
      }
      stack.pop_back();
      if (copies_.count(node.get())) continue;
      Tensors inputs;
      for (const auto& input : node->inputs)
        inputs.push_back(belongs(input, *node) ? tensor_of(copies_.at(node_of(input).get()), output_of(input)) : input);
      auto& copy = copies_[node.get()] = std::make_shared<Node>(*node, std::move(inputs));
      copy->effects = node->effects;
    }
    return copies_.at(wanted.get());
  }

  static bool belongs(const Tensor& input, const Node& reader) {
    return node_of(input)->op && node_of(input)->checkpoint == reader.checkpoint;
  }

  std::unordered_map<const Node*, NodePtr> copies_;
};

}  // namespace

std::vector<Tensor> checkpoint(const std::function<std::vector<Tensor>()>& f) {
  const auto first = Node::next_sequence();
  auto results = f();
  const auto id = Node::next_sequence();  // any number unique to this call
  std::vector<NodePtr> open;
  std::unordered_set<const Node*> seen;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined()) throw Error(fmt::format("checkpoint: the function's result {} is undefined", i));
    open.push_back(node_of(results[i]));
  }
  while (!open.empty()) {
    const auto node = std::move(open.back());
    open.pop_back();
    if (is_leaf(*node) || node->order < first || !seen.insert(node.get()).second) continue;
    if (node->checkpoint == 0) node->checkpoint = id;  // otherwise it belongs to an inner call
    for (const auto& input : node->inputs) open.push_back(node_of(input));
    for (const auto& input : differentiated(*node)) open.push_back(node_of(input));
  }
  return results;
}

Tensor checkpoint(const std::function<Tensor()>& f) {
  return checkpoint(std::function<std::vector<Tensor>()>([&] { return std::vector{f()}; }))[0];
}

std::vector<Tensor> gradients(std::span<const Tensor> outputs, std::span<const Tensor> output_gradients,
                              std::span<const Tensor> inputs) {
  if (outputs.size() != output_gradients.size())
    throw Error(fmt::format("gradients: {} outputs, but {} gradients of outputs", outputs.size(), output_gradients.size()));
  const auto require = [](std::span<const Tensor> tensors, std::string_view what) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (!tensors[i].defined()) throw Error(fmt::format("gradients: {} {} is undefined", what, i));
  };
  require(outputs, "output");
  require(output_gradients, "the gradient of output");
  require(inputs, "input");
  if (const auto* capture = capturing())
    for (const auto& input : inputs)
      if (const auto& node = *node_of(input); node.slot != 0 && capture->slots.count(&node) == 0)
        for (const auto& [slot, stand_in] : capture->stand_ins)
          if (slot->id == node.slot)
            throw Error(
                "compile: gradients by a parameter's value that was taken outside of the function, where it is one for all "
                "calls; "
                "Parameter::value() gives it inside");
  // Each operation's gradient uses the dtypes of its forward pass.
  const Autocast as_written(Dtype::f32);
  std::pmr::monotonic_buffer_resource memory;
  std::pmr::unordered_map<const Node*, std::vector<Arrivals>> arrived(&memory);
  const auto arrive = [&](const Tensor& at, const Tensor& gradient, std::string_view from, bool may_wait) {
    const auto wrong = [&] {
      return fmt::format("gradients: {} gives a gradient {} for a value {}", from, to_string(gradient.spec()),
                         to_string(at.spec()));
    };
    if (gradient.shape() != at.shape()) throw ShapeError(wrong());
    if (gradient.dtype() != at.dtype()) throw DtypeError(wrong());
    auto& slots = arrived[node_of(at).get()];
    slots.resize(node_of(at)->outputs.size());
    slots[static_cast<std::size_t>(output_of(at))].add(gradient, may_wait);
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) arrive(outputs[i], output_gradients[i], "the caller", false);

  const auto order = path(outputs, inputs);
  std::pmr::unordered_set<const Node*> on_path(&memory);
  for (const auto& node : order) on_path.insert(node.get());
  Recomputed recomputed;
  Joints joints;
  Tensors results, incoming;
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    const auto found = arrived.find(node->get());
    if (found == arrived.end() || is_leaf(**node)) continue;
    bool needed = false;
    const auto from = differentiated(**node);
    for (const auto& input : from) needed = needed || on_path.count(node_of(input).get());
    if (!needed) continue;
    results.clear();
    for (std::size_t i = 0; i < (*node)->outputs.size(); ++i) results.push_back(tensor_of(*node, static_cast<int>(i)));
    const InScope scope(std::make_shared<Scope>(Scope{(*node)->scope, {}, (*node)->op}));
    incoming.clear();
    for (auto& slot : found->second) incoming.push_back(slot.empty() ? Tensor{} : slot.total(joints));
    const bool as_it_is = (*node)->checkpoint == 0 && from.data() == (*node)->inputs.data();
    const auto flows =
        as_it_is ? (*node)->op->vjp((*node)->inputs, results, incoming)
                 : (*node)->op->vjp(recomputed.in_place_of(from, **node), recomputed.in_place_of(results, **node), incoming);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const auto& input = from[i];
      if (flows[i].defined() && is_floating(input.dtype()) && on_path.count(node_of(input).get()))
        // Recomputed values should be freed soon.
        arrive(input, flows[i], (*node)->op->name(), (*node)->checkpoint == 0);
    }
  }

  const auto arrivals_at = [&](const Tensor& input) -> Arrivals* {
    const auto found = arrived.find(node_of(input).get());
    if (found == arrived.end()) return nullptr;
    auto& slot = found->second[static_cast<std::size_t>(output_of(input))];
    return slot.empty() ? nullptr : &slot;
  };
  // For all inputs first: tensors joined for one may serve another.
  for (const auto& input : inputs)
    if (auto* arrivals = arrivals_at(input)) arrivals->join(joints);
  Tensors result;
  for (const auto& input : inputs) {
    auto* arrivals = arrivals_at(input);
    result.push_back(arrivals ? arrivals->total(joints) : zeros(input.shape(), input.dtype()));
  }
  return result;
}

std::vector<Tensor> gradients(const Tensor& loss, std::span<const Tensor> inputs) {
  if (!loss.defined()) throw Error("gradients: the loss is undefined");
  if (loss.numel() != 1)
    throw ShapeError(fmt::format("gradients: the loss must have one element, it is {}", to_string(loss.spec())));
  const Tensor one = ones(loss.shape(), loss.dtype());
  return gradients(std::span(&loss, 1), std::span(&one, 1), inputs);
}

std::vector<Tensor> gradients(const Tensor& loss, std::initializer_list<Tensor> inputs) {
  return gradients(loss, std::span(inputs.begin(), inputs.size()));
}

}  // namespace clnet
