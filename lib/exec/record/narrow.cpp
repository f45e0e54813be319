#include "lib/exec/record/narrow.h"

#include <optional>
#include <unordered_map>

#include "clnet/ops.h"
#include "lib/exec/fuse/fusion.h"

namespace clnet::exec {

namespace {

/// A node in whose place its part is made, by what reads the part.
struct Narrowed {
  const Node* reader;
  std::size_t input;  ///< the one of which less is read
  std::shared_ptr<Node> range;
  std::size_t readers = 0;
};

/// What `reader` takes of its input as a range of what that is made of; nothing where there is none, or it were hardly less.
std::optional<Narrowed> narrowed(const Node& reader) {
  if (reader.inputs.size() != 1) return std::nullopt;
  const auto& whole = reader.inputs[0];
  const auto& maker = *whole.node();
  if (!maker.op || maker.outputs.size() != 1) return std::nullopt;
  const auto window = reader.op->window({whole.spec()});
  if (!window) return std::nullopt;
  const auto count = reader.outputs[0].shape[window->dim];
  if (4 * count > 3 * whole.size(window->dim)) return std::nullopt;
  Specs specs;
  for (const auto& input : maker.inputs) specs.push_back(input.spec());
  const auto part = maker.op->part(specs, *window);
  if (!part) return std::nullopt;
  const InScope scope(maker.scope);
  const auto& [input, of] = *part;
  const auto range = slice(maker.inputs[input], of.dim, of.start, of.start + count);
  if (!range.node()->is_view()) return std::nullopt;
  return Narrowed{&reader, input, range.node()};
}

}  // namespace

void narrow(Work& work) {
  if (!fusion_enabled()) return;
  std::unordered_map<const Node*, Narrowed> by_maker, by_reader;
  for (const auto& node : work.nodes)
    if (auto found = narrowed(*node)) by_maker.emplace(node->inputs[0].node().get(), std::move(*found));
  if (by_maker.empty()) return;
  const auto count = [&](const Tensor& tensor) {
    if (const auto found = by_maker.find(tensor.node().get()); found != by_maker.end()) ++found->second.readers;
  };
  for (const auto& node : work.nodes)
    for (const auto& input : node->inputs) count(input);
  for (const auto& tensor : work.wanted) count(tensor);
  for (const auto& result : work.kept) count(work.tensor(result));
  std::erase_if(by_maker, [](const auto& entry) { return entry.second.readers != 1; });

  std::unordered_map<const Node*, std::shared_ptr<Node>> instead;
  const auto replace = [&](Tensor& tensor) {
    if (const auto other = instead.find(tensor.node().get()); other != instead.end())
      tensor = Tensor(other->second, tensor.output());
  };
  for (auto& node : work.nodes) {
    for (auto& input : node->inputs) replace(input);
    if (const auto found = by_maker.find(node.get()); found != by_maker.end()) {
      // Others in the place of the maker's inputs are there by now.
      found->second.range->inputs[0] = node->inputs[found->second.input];
      by_reader.emplace(found->second.reader, found->second);
      node = found->second.range;
    } else if (const auto part = by_reader.find(node.get()); part != by_reader.end()) {
      const auto maker = node->inputs[0].node();
      auto inputs = maker->inputs;
      inputs[part->second.input] = Tensor(part->second.range, 0);
      const InScope scope(maker->scope);
      const auto& made = instead[node.get()] = std::make_shared<Node>(maker->op, std::move(inputs), node->outputs);
      node = made;
    }
  }
  for (auto& tensor : work.wanted) replace(tensor);
}

}  // namespace clnet::exec
